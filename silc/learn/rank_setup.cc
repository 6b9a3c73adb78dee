// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/rank_setup.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "silc/base/error.h"

namespace silc {
namespace {

using Getter = std::function<const char*(const char*)>;

std::optional<std::string> Text(const Getter& get, const char* name) {
  const char* value = get(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::optional<int> Whole(const Getter& get, const char* name, int low, int high) {
  const std::optional<std::string> text = Text(get, name);
  if (!text) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < low || value > high) {
    throw ConfigError(std::string(name) + "=" + *text + ": must be a whole number from " +
                      std::to_string(low) + " to " + std::to_string(high));
  }
  return value;
}

int Required(const Getter& get, const char* name, const char* beside, int low, int high) {
  const std::optional<int> value = Whole(get, name, low, high);
  if (!value) throw ConfigError(std::string(name) + ": is not set, yet " + beside + " is");
  return *value;
}

constexpr int kMostRanks = 1 << 20, kMostPorts = 65535;

// (rank, size, local rank) by one starter's names
void ReadNumbers(const Getter& get,
                 const char* rank,
                 const char* size,
                 const char* local_rank,
                 const char* local_size,
                 RankSetup* setup) {
  setup->size = Required(get, size, rank, 1, kMostRanks);
  setup->rank = Required(get, rank, size, 0, setup->size - 1);
  setup->local_rank = Whole(get, local_rank, 0, setup->size - 1).value_or(0);
  setup->local_size = std::min(setup->size, Whole(get, local_size, 1, kMostRanks).value_or(1));
}

}  // namespace

std::string FirstHost(const std::string& nodelist) {
  const std::size_t end = nodelist.find_first_of(",[");
  std::string name = nodelist.substr(0, end);
  if (end == std::string::npos || nodelist[end] == ',') return name;
  const std::size_t number = nodelist.find_first_of(",-]", end + 1);
  if (number == std::string::npos) return name;
  return name + nodelist.substr(end + 1, number - end - 1);
}

RankSetup ReadRankSetup(const Getter& get) {
  RankSetup setup;
  const std::optional<std::string> address = Text(get, "MASTER_ADDR");
  const std::optional<int> port = Whole(get, "MASTER_PORT", 1, kMostPorts);
  if (Text(get, "RANK") || Text(get, "WORLD_SIZE")) {
    ReadNumbers(get, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", &setup);
    if (setup.size > 1 && (!address || !port)) {
      throw ConfigError(
          "MASTER_ADDR, MASTER_PORT: the ranks meet there; torchrun sets them, or you do");
    }
    // torchrun's own process keeps the store, and numbers its attempts
    setup.store_is_kept = Text(get, "TORCHELASTIC_USE_AGENT_STORE") == "True";
    setup.prefix = "silc/" + Text(get, "TORCHELASTIC_RESTART_COUNT").value_or("0");
  } else if (Text(get, "OMPI_COMM_WORLD_RANK")) {
    ReadNumbers(get,
                "OMPI_COMM_WORLD_RANK",
                "OMPI_COMM_WORLD_SIZE",
                "OMPI_COMM_WORLD_LOCAL_RANK",
                "OMPI_COMM_WORLD_LOCAL_SIZE",
                &setup);
    if (!address && setup.local_size < setup.size) {
      throw ConfigError(
          "MASTER_ADDR: is not set, and the ranks are on several machines\n"
          "  mpirun -x MASTER_ADDR=HOST …, HOST the machine of rank 0.");
    }
  } else if (Text(get, "SLURM_STEP_NUM_TASKS") && Text(get, "SLURM_PROCID")) {
    ReadNumbers(get,
                "SLURM_PROCID",
                "SLURM_STEP_NUM_TASKS",
                "SLURM_LOCALID",
                "SLURM_NTASKS_PER_NODE",
                &setup);
    const std::optional<std::string> nodes = Text(get, "SLURM_STEP_NODELIST");
    if (!address && setup.size > 1 && !nodes) {
      throw ConfigError("MASTER_ADDR, SLURM_STEP_NODELIST: neither is set");
    }
    if (nodes) setup.address = FirstHost(*nodes);
    // jobs that share a machine need ports of their own
    const int job = Whole(get, "SLURM_JOB_ID", 0, 2147483647).value_or(0);
    setup.port = 20000 + job % 20000;
  }
  if (address) setup.address = *address;
  if (port) setup.port = *port;
  return setup;
}

}  // namespace silc
