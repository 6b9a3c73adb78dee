// SPDX-License-Identifier: Apache-2.0
#include "silc/view/viewer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/test_paths.h"
#include "silc/npz/npz.h"
#include "silc/view/client.h"

namespace silc {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const char kShipped[] = "policies/g1_loco_silc_compliance.onnx";

// A folder of its own, gone with the test.
class RunFolder {
 public:
  RunFolder()
      : folder_(fs::path(::testing::TempDir()) /
                ("silc_viewer_test_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~RunFolder() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  std::string path() const { return folder_.string(); }
  std::string policy() const { return (folder_ / "policy.onnx").string(); }
  // as a training does it: whole, and newer than what was there
  void WritePolicy() const { WriteFileAtomically(policy(), ReadFile(SourcePath(kShipped))); }

 private:
  fs::path folder_;
};

Input PageWord(InputType type, std::uint32_t robot = 0, std::uint32_t index = 0) {
  return {type, robot, index, {}};
}

// What a page saw and was told.
struct Watched {
  StateFrame frame;
  std::vector<std::string> notices;
};

// Reads and acknowledges until `enough`, for a minute at most: sanitizers are slow.
template <typename Enough>
bool WatchUntil(PageClient* page, Watched* watched, Enough enough) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (std::chrono::steady_clock::now() < end) {
    const auto message = page->Read(20);
    if (!message) return false;
    if (message->binary) {
      const std::optional<StateFrame> frame = DecodeState(message->bytes);
      if (!frame || frame->sequence <= watched->frame.sequence) return false;
      watched->frame = *frame;
      page->Send(EncodeInput(PageWord(InputType::kAck, 0, frame->sequence)));
    } else {
      const json words = json::parse(message->bytes);
      if (words.contains("notice")) watched->notices.push_back(words["notice"]);
    }
    if (enough(*watched)) return true;
  }
  return false;
}

// Simulation, observer, server and the watch over a training at once, as a user has them: one page
// pushes and changes things, another watches, a third party saves recordings. TSan looks at this.
TEST(Viewer, ServesPagesThatPushAndSaveWhileATrainingWritesItsPolicy) {
  const RunFolder run;
  run.WritePolicy();
  ViewerOptions options;
  options.simulation.policies = {FindPolicyFile(run.path())};
  options.watched = options.simulation.policies;
  options.server.port = 0;
  std::stop_source stop;
  std::promise<std::string> ready;
  std::jthread viewer([&] {
    RunViewer(
        options,
        stop.get_token(),
        [&](const std::string& address) { ready.set_value(address); },
        [](const std::string& text) { ADD_FAILURE() << text; });
  });
  const std::string address = ready.get_future().get();
  const int port = std::stoi(address.substr(address.rfind(':') + 1));

  // the first page has the hand
  PageClient page(port);
  Watched seen;
  const auto send = [&](const Input& input) { page.Send(EncodeInput(input)); };
  EXPECT_TRUE(WatchUntil(&page, &seen, [](const Watched& w) { return w.frame.sequence > 0; }));
  std::atomic<bool> done = false;
  std::atomic<int> watched_frames = 0, saved = 0;
  std::jthread spectator([&] {
    PageClient other(port);
    Watched watched;
    WatchUntil(&other, &watched, [&](const Watched&) {
      ++watched_frames;
      return done.load();
    });
  });
  std::jthread saver([&] {
    while (!done) {
      const HttpAnswer answer = HttpGet(port, "/recording.npz?robot=0");
      if (answer.status == 200) saved += ParseNpz(answer.body, "saved")["qpos"].shape()[0] > 0;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });

  EXPECT_TRUE(WatchUntil(&page, &seen, [](const Watched& w) {
    return w.frame.sequence > 0 && std::isfinite(w.frame.robots[0].reading.loop_radius);
  })) << "observed";
  send(PageWord(InputType::kGrab, 0, 20));
  EXPECT_TRUE(WatchUntil(&page, &seen, [](const Watched& w) {
    return w.frame.robots[0].push == 1;
  })) << "grabbed";
  Input pull = PageWord(InputType::kPull);
  pull.value = {0.3, 0.2, 0.9};
  send(pull);
  send(PageWord(InputType::kBudget, 0, 1));
  send(PageWord(InputType::kGravity, 0, 2));
  EXPECT_TRUE(WatchUntil(&page, &seen, [](const Watched& w) {
    return w.frame.robots[0].budget == 1 && w.frame.gravity == GravityChoice::kFollowed &&
           w.frame.robots[0].f_W.norm() > 1;
  })) << "pulled and judged by another budget";
  run.WritePolicy();
  EXPECT_TRUE(WatchUntil(&page, &seen, [](const Watched& w) {
    return !w.notices.empty() && w.notices.back().find("a newer policy") == 0;
  })) << "a checkpoint came";
  send(PageWord(InputType::kReset));
  EXPECT_TRUE(WatchUntil(&page, &seen, [](const Watched& w) {
    return w.frame.robots[0].push == 0;
  })) << "begun again";
  EXPECT_GT(saved, 0);
  EXPECT_GT(watched_frames, 0);
  done = true;
  saver.join();
  spectator.join();
  stop.request_stop();
  viewer.join();
  EXPECT_TRUE(seen.frame.robots.size() == 1);
}

// `silc view` and `silc bench view` show these where none is named; one robot is the first.
TEST(Viewer, TheComparedPoliciesAreShippedOnesAndSilcIsFirst) {
  const std::vector<std::string> shipped = ShippedPolicies("g1"), compared = ComparedPolicies();
  ASSERT_EQ(compared.size(), 2u);
  for (const std::string& file : compared) {
    EXPECT_EQ(std::ranges::count(shipped, file), 1) << file;
  }
  EXPECT_NE(compared[0].find("silc"), std::string::npos) << compared[0];
  EXPECT_NE(compared[1].find("baseline"), std::string::npos) << compared[1];
}

TEST(Viewer, AFolderThatIsNoRunIsToldOf) {
  const RunFolder run;
  EXPECT_THROW(FindPolicyFile(run.path()), ConfigError);
  EXPECT_EQ(FindPolicyFile("some.onnx"), "some.onnx");
  // with a policy it is as good as a run
  run.WritePolicy();
  EXPECT_EQ(FindPolicyFile(run.path()), run.policy());
}

// A run has its settings from the beginning and its policy from the first checkpoint on: that is
// waited for, until it comes or the user has waited enough.
TEST(Viewer, ARunBeforeItsFirstCheckpointIsWaitedFor) {
  const RunFolder run;
  WriteFileAtomically(run.path() + "/config.yaml", "");
  const std::string file = FindPolicyFile(run.path());
  EXPECT_EQ(file, run.policy());

  std::stop_source stop;
  auto enough = std::async(std::launch::async, [&] { return WaitForFile(file, stop.get_token()); });
  EXPECT_EQ(enough.wait_for(std::chrono::milliseconds(600)), std::future_status::timeout);
  stop.request_stop();
  EXPECT_FALSE(enough.get());

  std::stop_source never;
  auto comes = std::async(std::launch::async, [&] { return WaitForFile(file, never.get_token()); });
  EXPECT_EQ(comes.wait_for(std::chrono::milliseconds(600)), std::future_status::timeout);
  run.WritePolicy();
  EXPECT_TRUE(comes.get());
  EXPECT_TRUE(WaitForFile(file, never.get_token())) << "it is there";
}

}  // namespace
}  // namespace silc
