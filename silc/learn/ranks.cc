// SPDX-License-Identifier: Apache-2.0
// The one source that knows c10d.
#include "silc/learn/ranks.h"

#include <fmt/format.h>
#include <torch/version.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/learn/tensor.h"
#if defined(SILC_HAVE_GLOO) || defined(SILC_HAVE_NCCL)
#define SILC_HAVE_C10D
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#endif
// LibTorch's own names for what its headers shall declare; some LibTorch sets them itself
#ifdef SILC_HAVE_GLOO
#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO
#endif
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif
#ifdef SILC_HAVE_NCCL
#ifndef USE_C10D_NCCL
#define USE_C10D_NCCL
#endif
#include <c10/cuda/CUDAFunctions.h>

#include <torch/csrc/cuda/nccl.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

namespace silc {

Tensor Ranks::Sum(const Tensor& parts) {
  Tensor total = parts[0];
  for (std::int64_t i = 1; i < parts.size(0); ++i) total = total + parts[i];
  return total;
}
Tensor Ranks::Gather(const Tensor& rows) { return rows; }
std::vector<std::string> Ranks::GatherBytes(const std::string& bytes) { return {bytes}; }
std::string Ranks::Broadcast(const std::string& bytes) { return bytes; }

std::vector<double> SumOnHost(Ranks* ranks,
                              std::span<const double> parts,
                              std::size_t blocks,
                              bool gpu) {
  const Tensor own = at::tensor(at::ArrayRef<double>(parts.data(), parts.size()), at::kDouble)
                         .view({static_cast<std::int64_t>(blocks), -1});
  const Tensor total = ranks->Sum(gpu ? own.to(at::kCUDA) : own).cpu();
  return {total.data_ptr<double>(), total.data_ptr<double>() + total.numel()};
}

std::shared_ptr<Ranks> OneRank() { return std::make_shared<Ranks>(); }

#ifdef SILC_HAVE_C10D

namespace {

using std::chrono::milliseconds;
using Seconds = std::chrono::duration<double>;
using SteadyClock = std::chrono::steady_clock;
using StorePtr = c10::intrusive_ptr<c10d::Store>;
#if TORCH_VERSION_MAJOR < 2
using C10dBackend = c10d::ProcessGroup;
#else
using C10dBackend = c10d::Backend;
#endif

milliseconds Milliseconds(double seconds) {
  return std::chrono::duration_cast<milliseconds>(Seconds(seconds));
}
constexpr double kJoinTimes = 5;    // of the timeout: machines do not start together
constexpr double kStuckTimes = 10;  // of the timeout: a rank that lives and does not come

c10::intrusive_ptr<c10d::TCPStore> OpenTcpStore(const std::string& address,
                                                int port,
                                                bool server,
                                                double timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(port);
  options.isServer = server;
  options.waitWorkers = false;
  options.timeout = Milliseconds(timeout);
  return c10::make_intrusive<c10d::TCPStore>(address, options);
}

StorePtr OpenStore(const RankSetup& s, bool server) {
  return c10::make_intrusive<c10d::PrefixStore>(
      s.prefix, OpenTcpStore(s.address, s.port, server, kJoinTimes * s.timeout));
}

// Says that this rank lives, and listens whether the others do. Rank 0 listens to all, the others
// to rank 0, and all to what a rank said before it ended: a thousand ranks are then a few thousand
// short requests a second. It has a connection of its own, since a store answers one thing at a
// time.
class Watcher {
 public:
  explicit Watcher(const RankSetup& setup)
      : setup_(setup), store_(OpenStore(setup, false)), period_(setup.timeout / 10) {
    if (period_ > Seconds(1)) period_ = Seconds(1);
    thread_ = std::jthread([this](const std::stop_token& ended) { Run(ended); });
  }

  /// A call of c10d failed: whoever is silent for a few beats now is the cause.
  void Trouble() {
    if (trouble_.exchange(true)) return;
    try {
      const std::lock_guard lock(store_mutex_);
      store_->add("trouble", 1);
    } catch (const std::exception&) {  // the thread finds the same
    }
  }
  /// Tells the others why this rank ends; it does so by itself.
  void Announce(const std::string& why) {
    ends_itself_ = true;
    try {
      const std::lock_guard lock(store_mutex_);
      if (store_->add("failures", 1) != 1) return;  // somebody was first
      store_->set("why", std::vector<std::uint8_t>(why.begin(), why.end()));
      store_->add("failed", 1);
    } catch (const std::exception&) {  // with the store everybody is gone
    }
  }
  Seconds period() const { return period_; }
  /// How long a silent rank may take to be found once there is trouble [s].
  double trouble_limit() const { return std::min(setup_.timeout, 5 * period_.count() + 1); }
  void Stop() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  struct Heard {
    std::int64_t beats = -1;
    SteadyClock::time_point at = SteadyClock::now();
  };

  void Run(const std::stop_token& ended) {
    std::vector<Heard> heard(setup_.rank == 0 ? setup_.size : 1);
    while (!ended.stop_requested()) {
      try {
        Beat(&heard);
      } catch (const std::exception& error) {
        if (ended.stop_requested()) return;
        End(fmt::format("rank 0, which keeps the store at {}:{}, is lost: {}",
                        setup_.address,
                        setup_.port,
                        FirstLine(error.what())));
      }
      std::unique_lock lock(wait_mutex_);
      wait_.wait_for(lock, ended, period_, [] { return false; });
    }
  }

  void Beat(std::vector<Heard>* heard) {
    const std::lock_guard lock(store_mutex_);
    store_->add(fmt::format("beat/{}", setup_.rank), 1);
    if (store_->add("failed", 0) > 0) {
      const std::vector<std::uint8_t> why = store_->get("why");
      End(std::string(why.begin(), why.end()));
    }
    const bool trouble = trouble_ || store_->add("trouble", 0) > 0;
    const double limit = trouble ? trouble_limit() : setup_.timeout;
    for (int other = 0; other < static_cast<int>(heard->size()); ++other) {
      if (other == setup_.rank) continue;
      Heard& h = (*heard)[other];
      const std::int64_t beats = store_->add(fmt::format("beat/{}", other), 0);
      const auto now = SteadyClock::now();
      if (beats != h.beats) {
        h = {beats, now};
      } else if (Seconds(now - h.at).count() > limit) {
        const std::string why = fmt::format("rank {} is lost: nothing was heard of it for {:.0f} s",
                                            other,
                                            Seconds(now - h.at).count());
        if (store_->add("failures", 1) == 1) {
          store_->set("why", std::vector<std::uint8_t>(why.begin(), why.end()));
          store_->add("failed", 1);
        }
        std::this_thread::sleep_for(2 * period_);  // the store may be ours: let the others read
        End(why);
      }
    }
  }

  static std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

  // The main thread waits for somebody who will not come, perhaps in a recorded graph: nothing but
  // the process's end gets it out. Checkpoints are written beside and renamed, so the last is
  // whole.
  void End(const std::string& why) const {
    if (ends_itself_) return;
    std::fprintf(stderr, "silc: rank %d ends: %s\n", setup_.rank, why.c_str());
    if (!setup_.way_out.empty()) std::fprintf(stderr, "  %s\n", setup_.way_out.c_str());
    std::fflush(stderr);
    std::_Exit(1);
  }

  RankSetup setup_;
  StorePtr store_;
  std::mutex store_mutex_;
  Seconds period_;
  std::atomic<bool> trouble_{false}, ends_itself_{false};
  std::mutex wait_mutex_;
  std::condition_variable_any wait_;
  std::jthread thread_;
};

class C10dRanks : public Ranks {
 public:
  C10dRanks(const RankSetup& setup, bool gpu) : setup_(setup), gpu_(gpu) {
    try {
      store_ = OpenStore(setup, setup.rank == 0 && !setup.store_is_kept);
    } catch (const std::exception& error) {
      throw RunError(fmt::format("rank {} of {}: the store of rank 0 at {}:{} {}: {}",
                                 setup.rank,
                                 setup.size,
                                 setup.address,
                                 setup.port,
                                 setup.rank == 0 ? "cannot be opened" : "is not there",
                                 error.what()));
    }
    Join();
    watcher_ = std::make_unique<Watcher>(setup);
    Guarded([&] { Connect(); });
  }
  ~C10dRanks() override { watcher_->Stop(); }

  int rank() const override { return setup_.rank; }
  int size() const override { return setup_.size; }
  int local_size() const override { return setup_.local_size; }

  Tensor Sum(const Tensor& parts) override {
    return Guarded([&] { return gpu_ ? SumByNccl(parts) : SumInOrder(parts); });
  }
  Tensor Gather(const Tensor& rows) override {
    return Guarded([&] { return AllGather(rows); });
  }
  std::vector<std::string> GatherBytes(const std::string& bytes) override;
  std::string Broadcast(const std::string& bytes) override;

  void Fail(const std::string& why) override {
    if (lost_) return;  // the others know as much
    watcher_->Announce(fmt::format("rank {} failed: {}", setup_.rank, why));
    std::this_thread::sleep_for(3 * watcher_->period());  // the store may be ours: let them read
  }
  void Leave() override;

 private:
  void Join() {
    const auto deadline = SteadyClock::now() + Seconds(kJoinTimes * setup_.timeout);
    for (int other = -1; other < setup_.size; ++other) {
      try {
        if (other < 0) {
          store_->set(fmt::format("here/{}", setup_.rank), std::vector<std::uint8_t>{1});
          continue;
        }
        const double left = Seconds(deadline - SteadyClock::now()).count();
        store_->wait({fmt::format("here/{}", other)}, Milliseconds(std::max(0.1, left)));
      } catch (const std::exception&) {
        throw RunError(fmt::format("rank {} of {} did not come within {:.0f} s (this is rank {})",
                                   other,
                                   setup_.size,
                                   kJoinTimes * setup_.timeout,
                                   setup_.rank));
      }
    }
  }

  void Connect() {
    const auto timeout = Milliseconds(kStuckTimes * setup_.timeout);
#ifdef SILC_HAVE_NCCL
    if (gpu_) {
      // Its own watch over the device asks for events from another thread, which a recording does
      // not bear in every version; and it does not see recorded work. Ours ends the process.
      ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", /*overwrite=*/0);
      auto options = c10d::ProcessGroupNCCL::Options::create();
      options->timeout = timeout;
      backend_ =
          c10::make_intrusive<c10d::ProcessGroupNCCL>(store_, setup_.rank, setup_.size, options);
      return;
    }
#endif
#ifdef SILC_HAVE_GLOO
    auto options = c10d::ProcessGroupGloo::Options::create(timeout);
    const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
    const bool here = setup_.address == "127.0.0.1" || setup_.address == "localhost";
    options->devices.push_back(interface != nullptr
                                   ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
                               : here ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                                      : c10d::ProcessGroupGloo::createDefaultDevice());
    backend_ =
        c10::make_intrusive<c10d::ProcessGroupGloo>(store_, setup_.rank, setup_.size, options);
#endif
  }

  // What c10d throws says which connection broke, not whose. The watchers find out whose and end
  // the process; where they find all alive, it is thrown on.
  template <class Work>
  auto Guarded(const Work& work) -> decltype(work()) {
    try {
      return work();
    } catch (const std::exception& error) {
      lost_ = true;
      const std::string what = error.what();
      watcher_->Trouble();
      std::this_thread::sleep_for(Seconds(watcher_->trouble_limit()) + 4 * watcher_->period());
      throw RunError(
          fmt::format("rank {}: an exchange with the other ranks failed: {}", setup_.rank, what));
    }
  }

  static Tensor AddRows(const Tensor& rows) {
    Tensor total = rows[0].clone();
    for (std::int64_t i = 1; i < rows.size(0); ++i) total.add_(rows[i]);
    return total;
  }

  Tensor AllGather(const Tensor& rows) {
    const Tensor own = rows.contiguous();
    std::vector<std::int64_t> sizes = own.sizes().vec();
    sizes[0] *= setup_.size;
    Tensor all = at::empty(sizes, own.options());
#if TORCH_VERSION_MAJOR >= 2
    if (gpu_) {
      Tensor input = own;
      backend_->_allgather_base(all, input)->wait();
      return all;
    }
#endif
    std::vector<std::vector<Tensor>> out = {all.chunk(setup_.size, 0)};
    std::vector<Tensor> in = {own};
    backend_->allgather(out, in)->wait();
    return all;
  }

  // Each rank adds up a slice of what all have sent it and hands the sum to all: the traffic of a
  // ring, 2 n a rank, in the order of the blocks. Short ones go to everybody at once.
  Tensor SumInOrder(const Tensor& parts) {
    const std::int64_t k = parts.size(0), n = parts.size(1), R = setup_.size;
    constexpr std::int64_t kShort = 1024;
    if (n <= kShort) return AddRows(AllGather(parts));
    const std::int64_t slice = (n + R - 1) / R;
    Tensor padded = at::zeros({k, R * slice}, parts.options());
    padded.narrow(1, 0, n).copy_(parts);
    Tensor send = padded.view({k, R, slice}).permute({1, 0, 2}).contiguous();
    Tensor received = at::empty_like(send);
    std::vector<std::int64_t> even;
    backend_->alltoall_base(received, send, even, even)->wait();
    return AllGather(AddRows(received.view({R * k, slice}))).narrow(0, 0, n);
  }

  Tensor SumByNccl(const Tensor& parts) {
    std::vector<Tensor> total = {AddRows(parts)};
    backend_->allreduce(total)->wait();
    return total[0];
  }

  at::TensorOptions Where(at::ScalarType type) const {
    return at::TensorOptions(type).device(gpu_ ? at::kCUDA : at::kCPU);
  }
  Tensor FromBytes(const std::string& bytes, std::int64_t padded) const {
    Tensor t = at::zeros({padded}, at::kByte);
    if (!bytes.empty()) std::memcpy(t.data_ptr(), bytes.data(), bytes.size());
    return t.to(Where(at::kByte));
  }
  static std::string ToBytes(const Tensor& t, std::int64_t size) {
    const Tensor host = t.cpu();
    return {static_cast<const char*>(host.data_ptr()), static_cast<std::size_t>(size)};
  }

  RankSetup setup_;
  bool gpu_;
  bool lost_ = false;
  StorePtr store_;
  std::unique_ptr<Watcher> watcher_;
  c10::intrusive_ptr<C10dBackend> backend_;
};

std::vector<std::string> C10dRanks::GatherBytes(const std::string& bytes) {
  return Guarded([&] {
    const auto own = static_cast<std::int64_t>(bytes.size());
    const Tensor lengths = AllGather(at::full({1}, own, Where(at::kLong))).cpu();
    const std::int64_t longest = std::max<std::int64_t>(1, lengths.max().item<std::int64_t>());
    std::vector<Tensor> in = {FromBytes(bytes, longest)};
    std::vector<std::vector<Tensor>> out;
    if (setup_.rank == 0) {
      out.emplace_back();
      for (int r = 0; r < setup_.size; ++r) {
        out[0].push_back(at::empty({longest}, Where(at::kByte)));
      }
    }
    c10d::GatherOptions options;
    options.rootRank = 0;
    backend_->gather(out, in, options)->wait();
    std::vector<std::string> result;
    for (int r = 0; setup_.rank == 0 && r < setup_.size; ++r) {
      result.push_back(ToBytes(out[0][r], lengths[r].item<std::int64_t>()));
    }
    return result;
  });
}

std::string C10dRanks::Broadcast(const std::string& bytes) {
  return Guarded([&] {
    const bool root = setup_.rank == 0;
    std::vector<Tensor> length = {
        at::full({1}, static_cast<std::int64_t>(root ? bytes.size() : 0), Where(at::kLong))};
    backend_->broadcast(length)->wait();
    const std::int64_t size = length[0].item<std::int64_t>();
    std::vector<Tensor> data = {
        FromBytes(root ? bytes : std::string(), std::max<std::int64_t>(1, size))};
    backend_->broadcast(data)->wait();
    return ToBytes(data[0], size);
  });
}

void C10dRanks::Leave() {
  Sum(at::zeros({1, 1}, Where(at::kFloat)));
  if (gpu_) at::zeros({1}, Where(at::kFloat)).cpu();  // what was queued has been done
  watcher_->Stop();
  store_->add("left", 1);
  if (setup_.rank != 0 || setup_.store_is_kept) return;
  // the store goes with rank 0, and the others' watchers must be still by then
  const auto deadline = SteadyClock::now() + Seconds(setup_.timeout);
  while (store_->add("left", 0) < setup_.size && SteadyClock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(5));
  }
}

}  // namespace

std::shared_ptr<Ranks> ConnectRanks(const RankSetup& setup, bool gpu) {
  if (setup.size == 1) return OneRank();
  if (!(gpu ? RanksOnGpu() : RanksOnCpu())) {
    throw ConfigError(fmt::format("{} processes: this build connects them over {} only; {}",
                                  setup.size,
                                  gpu ? "Gloo, on CPUs," : "NCCL, on GPUs,",
                                  gpu ? "it has no NCCL" : "choose --backend cuda"));
  }
#ifdef SILC_HAVE_NCCL
  if (gpu) {
    // settings of NCCL are a struct of its header: another version's has another size
    constexpr std::uint64_t kOurs = (std::uint64_t(NCCL_MAJOR) << 16) | NCCL_MINOR;
    const std::uint64_t theirs = torch::cuda::nccl::version() >> 16;
    if (theirs != kOurs) {
      throw ConfigError(
          fmt::format("NCCL: silc was built with the header of {}.{}, LibTorch with {}.{}\n"
                      "  Build it again with SILC_NCCL_DIR at the folder of that nccl.h.",
                      NCCL_MAJOR,
                      NCCL_MINOR,
                      theirs >> 16,
                      theirs & 0xffff));
    }
    const int devices = c10::cuda::device_count();
    // a starter that shows each process its own GPU alone has it as number 0
    const int device = devices == 1 ? 0 : setup.local_rank;
    if (device >= devices) {
      throw ConfigError(fmt::format("rank {}: it is number {} on its machine, which has {} GPUs",
                                    setup.rank,
                                    setup.local_rank,
                                    devices));
    }
    c10::cuda::set_device(static_cast<c10::DeviceIndex>(device));
  }
#endif
  return std::make_shared<C10dRanks>(setup, gpu);
}

struct RankStore::Impl {
  c10::intrusive_ptr<c10d::TCPStore> store;
};
RankStore::RankStore()
    : impl_(new Impl{OpenTcpStore("127.0.0.1", 0, /*server=*/true, /*timeout=*/60)}) {}
RankStore::~RankStore() = default;
int RankStore::port() const { return impl_->store->getPort(); }

#else  // no c10d

std::shared_ptr<Ranks> ConnectRanks(const RankSetup& setup, bool) {
  if (setup.size == 1) return OneRank();
  throw ConfigError(fmt::format(
      "{} processes: this build cannot connect them: LibTorch's c10d was not found with it",
      setup.size));
}

struct RankStore::Impl {};
RankStore::RankStore() {
  throw ConfigError("this build cannot connect processes: LibTorch's c10d was not found with it");
}
RankStore::~RankStore() = default;
int RankStore::port() const { return 0; }

#endif

#ifdef SILC_HAVE_GLOO
bool RanksOnCpu() { return true; }
#else
bool RanksOnCpu() { return false; }
#endif
#ifdef SILC_HAVE_NCCL
bool RanksOnGpu() { return true; }
#else
bool RanksOnGpu() { return false; }
#endif

}  // namespace silc
