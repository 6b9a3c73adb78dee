// SPDX-License-Identifier: Apache-2.0
// Damaged bytes on the wire: serialized states are mutated, given to the deserializer that Cyclone
// runs on what comes from the network, written as they are, and read by the link.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "dds/dds.h"
#include "dds/ddsi/ddsi_serdata.h"
#include "silc/deploy/commander.h"
#include "silc/deploy/dds/dds_link.h"
#include "silc/deploy/test_robot_frames.h"
#include "unitree_hg.h"

namespace silc::test {
namespace {

using namespace std::chrono_literals;
using Payload = std::vector<unsigned char>;

// Of this program alone: another checkout's tests may run beside it.
const int kDomain = 21 + 2 * (getpid() % 35);

// A program on the domain that can write any bytes under a topic's name.
class RawWriter {
 public:
  RawWriter(const dds_topic_descriptor_t* type, const char* name) {
    participant_ = dds_create_participant(kDomain, nullptr, nullptr);
    const dds_entity_t topic = dds_create_topic(participant_, type, name, nullptr, nullptr);
    dds_qos_t* qos = dds_create_qos();
    dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_MSECS(100));
    dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, 1);
    writer_ = dds_create_writer(participant_, topic, qos, nullptr);
    reader_ = dds_create_reader(participant_, topic, qos, nullptr);
    dds_delete_qos(qos);
  }
  ~RawWriter() {
    if (sound_ != nullptr) ddsi_serdata_unref(sound_);
    dds_delete(participant_);
  }
  RawWriter(const RawWriter&) = delete;
  RawWriter& operator=(const RawWriter&) = delete;

  /// The bytes of a sample as they go over the network, header first; empty when Cyclone refuses.
  Payload Serialize(const void* sample) {
    if (dds_write(writer_, sample) != DDS_RETCODE_OK) return {};
    dds_sample_info_t info;
    ddsi_serdata* serdata = nullptr;
    if (dds_takecdr(reader_, &serdata, 1, &info, DDS_ANY_STATE) != 1) return {};
    if (sound_ != nullptr) ddsi_serdata_unref(sound_);
    sound_ = serdata;
    Payload bytes(ddsi_serdata_size(serdata));
    ddsi_serdata_to_ser(serdata, 0, bytes.size(), bytes.data());
    return bytes;
  }

  /// False: the deserializer refused the bytes, as it would refuse them from the network.
  /// @pre Serialize() gave bytes before
  bool Write(Payload bytes) {
    ddsrt_iovec_t part{};
    part.iov_base = bytes.data();
    part.iov_len = bytes.size();
    ddsi_serdata* serdata =
        ddsi_serdata_from_ser_iov(sound_->type, SDK_DATA, 1, &part, bytes.size());
    if (serdata == nullptr) return false;
    return dds_writecdr(writer_, serdata) == DDS_RETCODE_OK;
  }

 private:
  dds_entity_t participant_ = 0, writer_ = 0, reader_ = 0;
  ddsi_serdata* sound_ = nullptr;  // knows the type
};

// Flipped bits, other bytes, bytes lost and added, another header, nothing at all.
void Mutate(std::mt19937* rng, Payload* bytes) {
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(*rng);
  };
  const std::size_t changes = 1 + below(4);
  for (std::size_t k = 0; k < changes; ++k) {
    switch (below(6)) {
      case 0:
        if (!bytes->empty()) (*bytes)[below(bytes->size())] ^= 1U << below(8);
        break;
      case 1:
        if (!bytes->empty()) (*bytes)[below(bytes->size())] = static_cast<unsigned char>((*rng)());
        break;
      case 2:  // a run of one value: zeros, ones, parts of NaN
        if (!bytes->empty()) {
          const std::size_t first = below(bytes->size());
          const std::size_t last = std::min(bytes->size(), first + below(64));
          const unsigned char fill[] = {0x00, 0xff, 0x7f, 0x80};
          std::fill(bytes->begin() + static_cast<std::ptrdiff_t>(first),
                    bytes->begin() + static_cast<std::ptrdiff_t>(std::max(first, last)),
                    fill[below(4)]);
        }
        break;
      case 3:
        if (below(4) == 0) bytes->resize(below(bytes->size() + 1));
        break;
      case 4:
        if (below(4) == 0) bytes->resize(bytes->size() + below(100), 0xa5);
        break;
      default:  // the header: encoding, options
        if (below(4) == 0 && bytes->size() >= 4) {
          (*bytes)[below(4)] = static_cast<unsigned char>(below(16));
        }
    }
  }
}

template <typename Condition>
bool Soon(Condition condition) {
  for (int k = 0; k < 2000; ++k) {
    if (condition()) return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

// A robot that is under its policy is sent damaged states. Every other one gets a right CRC again,
// as if it had been damaged inside the robot: such a state is believed, and moves the robot or
// stops it. WhyUnsafe() judges each command by the state that was believed.
TEST(DdsPayload, DamagedStatesNeitherCrashNorMakeACommandUnsafe) {
  const CommanderConfig config = PlainConfig();
  const auto link = MakeDdsLink({.domain = kDomain, .network = "lo"});
  RawWriter robot(&unitree_hg_msg_dds__LowState__desc, "rt/lowstate");
  Rig driven(config);
  driven.DriveTo(DriveState::kPolicy);
  const LowState sound = driven.robot.Frame();
  LowState received;
  ASSERT_TRUE(Soon([&] {
    robot.Serialize(&sound);
    return link->ReceiveState(&received, 5ms);
  }));
  const Payload bytes = robot.Serialize(&sound);
  ASSERT_GT(bytes.size(), 2000U) << "the frame without the struct's padding, after a header";
  ASSERT_TRUE(link->ReceiveState(&received, 1s));

  std::mt19937 rng(20);
  Rig rig = driven;
  int refused = 0, read = 0, believed = 0, moved = 0, stopped = 0;
  for (int trial = 0; trial < 100'000; ++trial) {
    Payload damaged = bytes;
    Mutate(&rng, &damaged);
    if (!robot.Write(damaged)) {
      ++refused;
      continue;
    }
    ASSERT_TRUE(link->ReceiveState(&received, 1s)) << "trial " << trial;
    ++read;
    if (trial % 2 == 0) received.crc = FrameCrc(received);
    believed += FrameCrc(received) == received.crc ? 1 : 0;
    rig.spoil_bytes = [&](LowState* frame) { *frame = received; };
    rig.Step();
    ASSERT_TRUE(rig.last.send);
    ASSERT_EQ(WhyUnsafe(rig.last.command, config, rig.shown, 5), "") << "trial " << trial;
    if (rig.last.latched) {
      ASSERT_TRUE(IsDamping(rig.last.command, config)) << "trial " << trial;
      ++stopped;
      rig = driven;
    } else {
      moved += IsDamping(rig.last.command, config) ? 0 : 1;
    }
  }
  // all ways were gone: bytes that are no frame, frames that are wrong, frames that are believed;
  // commands that move the robot, and stops
  EXPECT_GT(refused, 1000);
  EXPECT_GT(read, 50'000);
  EXPECT_GT(believed, 10'000);
  EXPECT_GT(moved, 10'000);
  EXPECT_GT(stopped, 1000);
  // the link still hears
  ASSERT_TRUE(robot.Write(bytes));
  ASSERT_TRUE(link->ReceiveState(&received, 1s));
  EXPECT_EQ(Bytes(received), Bytes(sound));
}

// The other way: what a simulated robot is sent.
TEST(DdsPayload, DamagedCommandsDoNotCrash) {
  const CommanderConfig config = PlainConfig();
  const auto port = MakeDdsPort({.domain = kDomain, .network = "lo"});
  RawWriter controller(&unitree_hg_msg_dds__LowCmd__desc, "rt/lowcmd");
  LowCommand sound{}, received;
  FillDamping(config, 5, &sound);
  sound.crc = FrameCrc(sound);
  ASSERT_TRUE(Soon([&] {
    controller.Serialize(&sound);
    return port->ReceiveCommand(&received, 5ms);
  }));
  const Payload bytes = controller.Serialize(&sound);
  ASSERT_TRUE(port->ReceiveCommand(&received, 1s));
  std::mt19937 rng(21);
  int refused = 0, read = 0;
  for (int trial = 0; trial < 10'000; ++trial) {
    Payload damaged = bytes;
    Mutate(&rng, &damaged);
    const bool written = controller.Write(damaged);
    (written ? read : refused)++;
    if (written) {
      ASSERT_TRUE(port->ReceiveCommand(&received, 1s)) << "trial " << trial;
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(read, 5'000);
}

}  // namespace
}  // namespace silc::test
