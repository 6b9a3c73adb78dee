// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy/dds/dds_link.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "dds/dds.h"
#include "dds/ddsrt/log.h"
#include "silc/base/error.h"
#include "silc/base/utf8.h"
#include "unitree_hg.h"

namespace silc {
namespace {

using WireCommand = unitree_hg_msg_dds__LowCmd_;
using WireState = unitree_hg_msg_dds__LowState_;
// the generated structs and ours are one image; only the padding is ours to keep zero
static_assert(sizeof(WireCommand) == sizeof(LowCommand));
static_assert(sizeof(WireState) == sizeof(LowState));
static_assert(offsetof(WireCommand, crc) == offsetof(LowCommand, crc));
static_assert(offsetof(WireState, wireless_remote) == offsetof(LowState, remote));
static_assert(offsetof(WireState, motor_state) == offsetof(LowState, motor));
static_assert(offsetof(unitree_hg_msg_dds__MotorState_, motorstate) ==
              offsetof(MotorReading, fault_word));

void ClearPadding(LowState* state) {
  std::memset(state->padding, 0, sizeof state->padding);
  std::memset(state->imu.padding, 0, sizeof state->imu.padding);
  for (MotorReading& motor : state->motor) std::memset(motor.padding, 0, sizeof motor.padding);
}

void ClearPadding(LowCommand* command) {
  std::memset(command->padding, 0, sizeof command->padding);
  for (MotorCommand& motor : command->motor) std::memset(motor.padding, 0, sizeof motor.padding);
}

dds_entity_t Made(dds_entity_t entity, const char* what) {
  if (entity < 0) {
    throw RunError(std::string("DDS: ") + what + ": " + dds_strretcode(-entity));
  }
  return entity;
}

// A loopback interface often has no multicast: there, participants are looked for by port.
std::string CycloneConfig(const DdsOptions& options) {
  std::string general, discovery;
  if (!options.network.empty()) {
    general = "<Interfaces><NetworkInterface name=\"" + options.network + "\"/></Interfaces>";
  }
  if (options.network == "lo") {
    general += "<AllowMulticast>spdp</AllowMulticast>";
    discovery =
        "<ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>30"
        "</MaxAutoParticipantIndex><Peers><Peer address=\"127.0.0.1\"/></Peers>";
  }
  return "<CycloneDDS><Domain><General>" + general + "</General><Discovery>" + discovery +
         "</Discovery></Domain></CycloneDDS>";
}

// What Cyclone says of its own accord goes to standard error as everything of silc does.
void SayOfCyclone(void* /*unused*/, const dds_log_data_t* said) {
  std::string_view text(said->message, said->size);
  while (text.ends_with('\n') || text.ends_with('\0')) text.remove_suffix(1);
  std::fputs(("silc: DDS: " + Printable(text) + "\n").c_str(), stderr);
}

// A domain is made once in a process and kept to its end.
void NeedDomain(const DdsOptions& options) {
  for (const char c : options.network) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && std::strchr("._-:@", c) == nullptr) {
      throw ConfigError("--network " + options.network + ": is not the name of an interface");
    }
  }
  static std::mutex mutex;
  static std::map<int, std::string> made;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = made.find(options.domain);
  if (found != made.end()) {
    if (found->second == options.network) return;
    throw RunError("DDS: domain " + std::to_string(options.domain) + " is on another interface");
  }
  dds_set_log_sink(SayOfCyclone, nullptr);
  Made(dds_create_domain(static_cast<dds_domainid_t>(options.domain),
                         CycloneConfig(options).c_str()),
       ("domain " + std::to_string(options.domain) + " on '" + options.network + "'").c_str());
  made[options.domain] = options.network;
}

// A command that is held back is soon out of date, and would still be followed: after a stop, too.
// A newer one waits by then.
constexpr std::chrono::milliseconds kCommandBlocking{20}, kStateBlocking{100};
constexpr std::chrono::seconds kMostMatching{2};
constexpr std::chrono::milliseconds kMatchingStep{5};

struct Topic {
  const dds_topic_descriptor_t* type;
  const char* name;
};
constexpr Topic kCommands = {&unitree_hg_msg_dds__LowCmd__desc, "rt/lowcmd"};
constexpr Topic kStates = {&unitree_hg_msg_dds__LowState__desc, "rt/lowstate"};

// Told by Cyclone's thread that something came in. The wait ends by the monotonic clock;
// dds_waitset_wait() ends by the wall clock, and hangs for as long as that is set back.
class Arrival {
 public:
  static void Tell(dds_entity_t /*reader*/, void* arrival) {
    auto* self = static_cast<Arrival*>(arrival);
    {
      const std::lock_guard<std::mutex> lock(self->mutex_);
      self->told_ = true;
    }
    self->changed_.notify_one();
  }
  /// False: nothing came until then.
  bool WaitUntil(std::chrono::steady_clock::time_point end) {
    std::unique_lock<std::mutex> lock(mutex_);
    const bool told = changed_.wait_until(lock, end, [&] { return told_; });
    told_ = false;
    return told;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool told_ = false;
};

// A participant with everything below it.
class DdsParticipant {
 public:
  explicit DdsParticipant(const DdsOptions& options) {
    NeedDomain(options);
    entity_ =
        Made(dds_create_participant(static_cast<dds_domainid_t>(options.domain), nullptr, nullptr),
             "participant");
  }
  ~DdsParticipant() { dds_delete(entity_); }
  DdsParticipant(const DdsParticipant&) = delete;
  DdsParticipant& operator=(const DdsParticipant&) = delete;

  dds_entity_t MakeTopic(const Topic& topic) const {
    return Made(dds_create_topic(entity_, topic.type, topic.name, nullptr, nullptr), topic.name);
  }
  /// `most_blocking`: a sample that a slow reader holds back for so long is given up.
  dds_entity_t MakeWriter(dds_entity_t topic, std::chrono::milliseconds most_blocking) const {
    dds_qos_t* qos = dds_create_qos();
    dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_MSECS(most_blocking.count()));
    dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, 1);
    const dds_entity_t writer = dds_create_writer(entity_, topic, qos, nullptr);
    dds_delete_qos(qos);
    return Made(writer, "writer");
  }
  /// `arrival`, if any, is told of what comes in, and has to outlive this.
  dds_entity_t MakeReader(dds_entity_t topic, Arrival* arrival = nullptr) const {
    dds_qos_t* qos = dds_create_qos();
    dds_qset_reliability(qos, DDS_RELIABILITY_BEST_EFFORT, 0);
    dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, 1);
    dds_listener_t* listener = dds_create_listener(arrival);
    if (arrival != nullptr) dds_lset_data_available(listener, Arrival::Tell);
    const dds_entity_t reader = dds_create_reader(entity_, topic, qos, listener);
    dds_delete_listener(listener);
    dds_delete_qos(qos);
    return Made(reader, "reader");
  }
  /// Writers of the reader's topic that belong to other participants.
  int ForeignWriters(dds_entity_t reader) const {
    std::array<dds_instance_handle_t, 16> handles{};
    const dds_return_t count = dds_get_matched_publications(reader, handles.data(), handles.size());
    dds_guid_t own{};
    if (dds_get_guid(entity_, &own) != DDS_RETCODE_OK) return 0;
    int foreign = 0;
    for (dds_return_t i = 0; i < std::min<dds_return_t>(count, handles.size()); ++i) {
      dds_builtintopic_endpoint_t* writer =
          dds_get_matched_publication_data(reader, handles[static_cast<std::size_t>(i)]);
      if (writer == nullptr) continue;
      foreign += std::memcmp(&writer->participant_key, &own, sizeof own) != 0 ? 1 : 0;
      dds_builtintopic_free_endpoint(writer);
    }
    return foreign;
  }

 private:
  dds_entity_t entity_ = 0;
};

// One side of the robot's two topics: what it reads and what it writes.
template <typename WireIn, typename WireOut>
class DdsSide {
 public:
  DdsSide(const DdsOptions& options, const Topic& in, const Topic& out) : participant_(options) {
    reader_ = participant_.MakeReader(participant_.MakeTopic(in), &arrival_);
    written_ = participant_.MakeTopic(out);
  }

  /// Until then this side only listens.
  void MakeWriter(std::chrono::milliseconds most_blocking) {
    writer_ = participant_.MakeWriter(written_, most_blocking);
  }

  /// Waits for a sample and takes the newest.
  template <typename Frame>
  bool Receive(Frame* frame, std::chrono::nanoseconds wait) {
    const auto end = std::chrono::steady_clock::now() + wait;
    do {
      if (Take(frame)) return true;
    } while (arrival_.WaitUntil(end));
    return false;
  }

  template <typename Frame>
  bool Send(const Frame& frame) {
    if (writer_ == 0) return false;
    WireOut wire;
    std::memcpy(&wire, &frame, sizeof wire);
    return dds_write(writer_, &wire) == DDS_RETCODE_OK;
  }

  const DdsParticipant& participant() const { return participant_; }
  dds_entity_t reader() const { return reader_; }
  dds_entity_t writer() const { return writer_; }    ///< 0: none yet
  dds_entity_t written() const { return written_; }  ///< the topic

 private:
  // False: nothing is there, or word that a writer has gone.
  template <typename Frame>
  bool Take(Frame* frame) {
    WireIn wire;
    void* samples[1] = {&wire};
    dds_sample_info_t info;
    if (dds_take(reader_, samples, &info, 1, 1) != 1 || !info.valid_data) return false;
    std::memcpy(frame, &wire, sizeof *frame);
    ClearPadding(frame);
    return true;
  }

  Arrival arrival_;  // outlives the participant, whose threads tell it
  DdsParticipant participant_;
  dds_entity_t reader_ = 0, written_ = 0, writer_ = 0;
};

class DdsLink : public RobotLink {
 public:
  explicit DdsLink(const DdsOptions& options) : side_(options, kStates, kCommands) {
    others_ = side_.participant().MakeReader(side_.written());
  }

  bool ReceiveState(LowState* state, std::chrono::nanoseconds wait) override {
    return side_.Receive(state, wait);
  }

  void BeginSending() override {
    side_.MakeWriter(kCommandBlocking);
    // what is sent before the robot's end is found is lost
    const auto end = std::chrono::steady_clock::now() + kMostMatching;
    while (!Health().robot_present && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(kMatchingStep);
    }
  }

  bool SendCommand(const LowCommand& command) override { return side_.Send(command); }

  LinkHealth Health() override {
    dds_subscription_matched_status_t heard{};
    dds_publication_matched_status_t hearing{};
    LinkHealth health;
    dds_get_subscription_matched_status(side_.reader(), &heard);
    health.robot_present = heard.current_count > 0;
    if (side_.writer() != 0) {
      // the reader that counts others matches our own writer, too
      dds_get_publication_matched_status(side_.writer(), &hearing);
      health.robot_present = health.robot_present && hearing.current_count > 1;
    }
    health.foreign_writers = side_.participant().ForeignWriters(others_);
    return health;
  }

 private:
  DdsSide<WireState, WireCommand> side_;
  dds_entity_t others_ = 0;  // of commands, ours too; what it reads nobody takes
};

class DdsPort : public RobotPort {
 public:
  explicit DdsPort(const DdsOptions& options) : side_(options, kCommands, kStates) {
    side_.MakeWriter(kStateBlocking);
  }

  bool ReceiveCommand(LowCommand* command, std::chrono::nanoseconds wait) override {
    return side_.Receive(command, wait);
  }

  bool SendState(const LowState& state) override { return side_.Send(state); }

 private:
  DdsSide<WireCommand, WireState> side_;
};

}  // namespace

std::unique_ptr<RobotLink> MakeDdsLink(const DdsOptions& options) {
  return std::make_unique<DdsLink>(options);
}

std::unique_ptr<RobotPort> MakeDdsPort(const DdsOptions& options) {
  return std::make_unique<DdsPort>(options);
}

}  // namespace silc
