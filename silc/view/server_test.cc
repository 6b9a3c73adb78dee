// SPDX-License-Identifier: Apache-2.0
#include "silc/view/server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "silc/base/error.h"
#include "silc/view/client.h"
#include "silc/view/page_files.h"

namespace silc {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

const char kSecret[] = "not-quite-a-secret";

std::string FrameNumber(std::uint32_t sequence) {
  StateFrame frame;
  frame.sequence = sequence;
  frame.sent =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  frame.robots.resize(1);
  return EncodeState(frame);
}

class ViewServerTest : public ::testing::Test {
 protected:
  std::unique_ptr<ViewServer> Start(ServerOptions options = {}) {
    options.port = 0;
    ServerSource source;
    source.scene_json = R"({"robot": "none"})";
    source.limits = {.robots = 2, .bodies = 31, .policies = 5, .budgets = 6, .pushes = 3};
    source.apply = [this](const Input& input) {
      const std::scoped_lock lock(mutex_);
      inputs_.push_back(input);
    };
    source.recording = [](int robot) { return "recording " + std::to_string(robot); };
    return std::make_unique<ViewServer>(options, std::move(source));
  }
  void Publish(ViewServer* server, std::uint32_t sequence) {
    server->Publish(std::make_shared<const std::string>(FrameNumber(sequence)));
  }
  std::vector<Input> inputs() {
    const std::scoped_lock lock(mutex_);
    return inputs_;
  }
  // until what happens on the server's thread has happened
  template <typename Condition>
  bool Eventually(Condition condition) {
    for (int i = 0; i < 500; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }
  // the next word of a page, frames left out
  static json NextWords(PageClient* page) {
    while (const auto message = page->Read()) {
      if (!message->binary) return json::parse(message->bytes);
    }
    return {};
  }
  static std::uint32_t NextFrame(PageClient* page) {
    while (const auto message = page->Read()) {
      if (message->binary) return DecodeState(message->bytes)->sequence;
    }
    return 0;
  }

 private:
  std::mutex mutex_;
  std::vector<Input> inputs_;
};

TEST_F(ViewServerTest, ServesThePageAndNothingElse) {
  const auto server = Start();
  const int port = server->port();
  const HttpAnswer page = HttpGet(port, "/");
  EXPECT_EQ(page.status, 200);
  EXPECT_NE(page.body.find("<!doctype html>"), std::string::npos);
  for (const PageFile& file : PageFiles()) {
    const HttpAnswer answer = HttpGet(port, std::string(file.path));
    EXPECT_EQ(answer.status, 200) << file.path;
    EXPECT_EQ(answer.body, file.bytes) << file.path;
    EXPECT_EQ(answer.type, file.type);
    EXPECT_GT(file.bytes.size(), 100u) << file.path;
  }
  EXPECT_EQ(HttpGet(port, "/scene.json").body, R"({"robot": "none"})");
  EXPECT_EQ(HttpGet(port, "/recording.npz?robot=1").body, "recording 1");
  EXPECT_EQ(HttpGet(port, "/recording.npz?robot=2").status, 400);
  EXPECT_EQ(HttpGet(port, "/recording.npz?robot=-1").status, 400);
  EXPECT_EQ(HttpGet(port, "/recording.npz").status, 400);
  EXPECT_EQ(HttpGet(port, "/page/../server.cc").status, 404);
  EXPECT_EQ(HttpGet(port, "/etc/passwd").status, 404);
  EXPECT_EQ(HttpGet(port, "/", "", "POST").status, 405);
  EXPECT_EQ(HttpGet(port, "/", "", "HEAD").status, 200);
  EXPECT_EQ(HttpGet(port, "/", "robots.example").status, 403) << "a name pointed here";
}

// A recording needs no simulation: its page, the script beside it, and no socket.
TEST_F(ViewServerTest, ServesARecordingWithoutASocket) {
  ServerSource source;
  source.recording_page = "<!doctype html>a recording";
  ServerOptions options;
  options.port = 0;
  const ViewServer server(options, source);
  const int port = server.port();
  const HttpAnswer page = HttpGet(port, "/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.body, source.recording_page);
  EXPECT_TRUE(page.type.starts_with("text/html")) << page.type;
  EXPECT_EQ(HttpGet(port, "/page/main.js").status, 200);
  // what belongs to a simulation is not there
  EXPECT_EQ(HttpGet(port, "/scene.json").status, 404);
  EXPECT_EQ(HttpGet(port, "/recording.npz?robot=0").status, 404);
  EXPECT_ANY_THROW(PageClient{port});
  // the rules of the live server
  EXPECT_EQ(HttpGet(port, "/", "robots.example").status, 403) << "a name pointed here";
  EXPECT_EQ(HttpGet(port, "/", "", "POST").status, 405);
  options.token = kSecret;
  const ViewServer secret(options, source);
  EXPECT_EQ(HttpGet(secret.port(), "/").status, 403);
  EXPECT_EQ(HttpGet(secret.port(), std::string("/?token=") + kSecret).body, source.recording_page);
}

// Everything that a page names has to be in the program: nothing is fetched from elsewhere.
TEST_F(ViewServerTest, ThePageNeedsNothingFromOutside) {
  for (const PageFile& file : PageFiles()) {
    if (file.path.ends_with("three.module.js")) continue;
    EXPECT_EQ(file.bytes.find("https://"), std::string_view::npos) << file.path;
    // import … from 'view/name.js'
    for (std::size_t at = 0; (at = file.bytes.find("'view/", at)) != std::string_view::npos; ++at) {
      const std::size_t end = file.bytes.find('\'', at + 1);
      const std::string name(file.bytes.substr(at + 6, end - at - 6));
      EXPECT_NE(FindPageFile("/page/" + name), nullptr) << file.path << " imports " << name;
    }
  }
}

TEST_F(ViewServerTest, NoiseOnThePortHurtsNobody) {
  const auto server = Start();
  std::mt19937 rng(3);
  for (int trial = 0; trial < 20; ++trial) {
    std::string noise = trial % 2 == 0 ? "GET /ws HTTP/1.1\r\nUpgrade: websocket\r\n" : "";
    for (int i = 0; i < 200; ++i) noise += static_cast<char>(rng() & 0xff);
    noise += "\r\n\r\n";
    SendRaw(server->port(), noise);
  }
  const std::string long_line = "GET /" + std::string(100000, 'a') + " HTTP/1.1\r\n\r\n";
  EXPECT_EQ(SendRaw(server->port(), long_line).find("200 OK"), std::string::npos);
  EXPECT_EQ(HttpGet(server->port(), "/").status, 200);
}

TEST_F(ViewServerTest, AnotherSitesPageIsRefused) {
  const auto server = Start();
  const std::string own = "http://127.0.0.1:" + std::to_string(server->port());
  EXPECT_NO_THROW(PageClient(server->port(), own));
  EXPECT_NO_THROW(PageClient(server->port()));
  EXPECT_ANY_THROW(PageClient(server->port(), "http://evil.example"));
  EXPECT_ANY_THROW(PageClient(server->port(), "null"));
  EXPECT_ANY_THROW(PageClient(server->port(), own, "/elsewhere"));
  EXPECT_ANY_THROW(PageClient(server->port(), "http://evil.example", "/ws", "evil.example"));
}

TEST_F(ViewServerTest, BeyondTheLoopbackATokenIsNeeded) {
  ServerOptions open;
  open.host = "0.0.0.0";
  EXPECT_THROW(Start(open), ConfigError);
  open.token = kSecret;
  const auto server = Start(open);
  EXPECT_NE(server->address().find(std::string("?token=") + kSecret), std::string::npos);
  const int port = server->port();
  EXPECT_EQ(HttpGet(port, "/").status, 403);
  EXPECT_EQ(HttpGet(port, "/scene.json?token=not-quite-a-secre").status, 403);
  EXPECT_EQ(HttpGet(port, "/recording.npz?robot=0").status, 403);
  EXPECT_EQ(HttpGet(port, std::string("/?token=") + kSecret).status, 200);
  EXPECT_ANY_THROW(PageClient(port, "", "/ws"));
  EXPECT_ANY_THROW(PageClient(port, "", "/ws?token=wrong"));
  EXPECT_NO_THROW(PageClient(port, "", std::string("/ws?token=") + kSecret));
}

TEST_F(ViewServerTest, ATakenPortAndAWrongHostAreToldOfBeforeAnythingBegins) {
  const auto server = Start();
  ServerOptions options;
  options.port = server->port();
  EXPECT_THROW(ViewServer(options, {}), ConfigError);
  options.host = "no.such.address";
  options.token = kSecret;
  EXPECT_THROW(ViewServer(options, {}), ConfigError);
}

TEST_F(ViewServerTest, ASlowPageGetsTheNewestFrameAndHoldsUpNobody) {
  const auto server = Start();
  const auto begin = std::chrono::steady_clock::now();
  PageClient slow(server->port()), quick(server->port());
  ASSERT_TRUE(Eventually([&] { return server->Stats().pages == 2; }));
  std::uint32_t seen = 0;
  for (std::uint32_t frame = 1; frame <= 50; ++frame) {
    Publish(server.get(), frame);
    seen = NextFrame(&quick);
    ASSERT_EQ(seen, frame) << "the one that answers sees each";
    quick.Send(EncodeInput({InputType::kAck, 0, frame, {}}));
  }
  // the other was sent four and has said nothing: it gets frame 50 once it does
  for (std::uint32_t frame = 1; frame <= 4; ++frame) EXPECT_EQ(NextFrame(&slow), frame);
  slow.Send(EncodeInput({InputType::kAck, 0, 4, {}}));
  EXPECT_EQ(NextFrame(&slow), 50u);
  const ServerStats stats = server->Stats();
  EXPECT_EQ(stats.frames_sent, 55u);
  EXPECT_EQ(stats.acknowledged.count, 51u);
  EXPECT_GT(stats.acknowledged.max, 0);
  EXPECT_LT(stats.acknowledged.mean, stats.acknowledged.max);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(stats.acknowledged.max, elapsed.count());
  EXPECT_EQ(stats.shown.count, 0u) << "to have a frame is not to have drawn it";
}

// Of six frames two were drawn: those two count, each from its own state to its own picture.
TEST_F(ViewServerTest, OnlyPicturesThatWereDrawnCountForStateToPixel) {
  const auto server = Start();
  PageClient page(server->port());
  ASSERT_TRUE(Eventually([&] { return server->Stats().pages == 1; }));
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint32_t frame = 1; frame <= 6; ++frame) {
    Publish(server.get(), frame);
    ASSERT_EQ(NextFrame(&page), frame);
    page.Send(EncodeInput({InputType::kAck, 0, frame, {}}));
    if (frame == 2 || frame == 5) {
      std::this_thread::sleep_for(60ms);
      // on the screen 20 ms ago
      page.Send(EncodeInput({InputType::kShown, 0, frame, {0.02}}));
      page.Send(EncodeInput({InputType::kShown, 0, frame, {0.02}}));      // told twice
      page.Send(EncodeInput({InputType::kShown, 0, frame - 1, {0.02}}));  // overtaken
    }
  }
  page.Send(EncodeInput({InputType::kReset, 0, 0, {}}));
  ASSERT_TRUE(Eventually([&] { return !inputs().empty(); })) << "all before it has been read";
  const double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const LatencyStats shown = server->Stats().shown;
  EXPECT_EQ(shown.count, 2u);
  EXPECT_GE(shown.mean, 0.04);
  EXPECT_LE(shown.max, elapsed);
}

TEST_F(ViewServerTest, ManyWatchAndOnePushes) {
  const auto server = Start();
  PageClient first(server->port());
  EXPECT_EQ(NextWords(&first)["hand"], "yours");
  PageClient second(server->port());
  EXPECT_EQ(NextWords(&second)["hand"], "taken");
  EXPECT_EQ(NextWords(&first)["pages"], 2);

  second.Send(EncodeInput({InputType::kReset, 0, 0, {}}));  // a spectator's, of no effect
  second.Send(EncodeInput({InputType::kHand, 0, 1, {}}));
  EXPECT_NE(NextWords(&second)["notice"].get<std::string>().find("another page"),
            std::string::npos);
  first.Send(EncodeInput({InputType::kPause, 0, 1, {}}));
  ASSERT_TRUE(Eventually([&] { return !inputs().empty(); }));
  EXPECT_EQ(inputs().front().type, InputType::kPause);

  // the hand falls to whoever asks, once its holder has gone; what it held is let go
  first.Send(EncodeInput({InputType::kHand, 0, 0, {}}));
  ASSERT_TRUE(Eventually([&] { return inputs().back().type == InputType::kRelease; }));
  second.Send(EncodeInput({InputType::kHand, 0, 1, {}}));
  second.Send(EncodeInput({InputType::kReset, 0, 0, {}}));
  EXPECT_TRUE(Eventually([&] { return inputs().back().type == InputType::kReset; }));
}

// Whoever takes the hand from a holder that sleeps does not take its pull over.
TEST_F(ViewServerTest, WhatAnIdleHolderPullsIsLetGoWhenAnotherTakesTheHand) {
  ServerOptions options;
  options.hand_idle = 0.3;
  const auto server = Start(options);
  PageClient first(server->port());
  ASSERT_EQ(NextWords(&first)["hand"], "yours");
  PageClient second(server->port());
  ASSERT_EQ(NextWords(&second)["hand"], "taken");
  first.Send(EncodeInput({InputType::kGrab, 0, 20, {}}));
  ASSERT_TRUE(Eventually([&] { return inputs().size() == 1; }));
  std::this_thread::sleep_for(400ms);
  second.Send(EncodeInput({InputType::kHand, 0, 1, {}}));
  second.Send(EncodeInput({InputType::kReset, 0, 0, {}}));
  ASSERT_TRUE(Eventually([&] { return inputs().size() >= 3; }));
  EXPECT_EQ(inputs()[1].type, InputType::kRelease);
  EXPECT_EQ(inputs()[2].type, InputType::kReset);
  // who has it already lets nothing go by asking again
  second.Send(EncodeInput({InputType::kHand, 0, 1, {}}));
  second.Send(EncodeInput({InputType::kPause, 0, 0, {}}));
  ASSERT_TRUE(Eventually([&] { return inputs().size() >= 4; }));
  EXPECT_EQ(inputs()[3].type, InputType::kPause);
}

TEST_F(ViewServerTest, NonsenseIsAnsweredAndClosedAndOthersGoOn) {
  const auto server = Start();
  PageClient good(server->port());
  ASSERT_EQ(NextWords(&good)["hand"], "yours");
  std::mt19937 rng(5);
  std::vector<std::pair<std::string, bool>> nonsense = {
      {"hello", false},
      {"", true},
      {std::string(kMaxInputBytes + 1, 'x'), true},
      {std::string(4096, 'x'), true},
      {EncodeInput({InputType::kPolicy, 0, 99, {}}), true},
      {EncodeInput({InputType::kSpring, 0, 0, {-1}}), true}};
  for (int i = 0; i < 10; ++i) {
    std::string bytes(rng() % 60, '\0');
    for (char& b : bytes) b = static_cast<char>(rng() & 0xff);
    nonsense.emplace_back(bytes, true);
  }
  const auto answer = [&](const std::string& bytes, bool binary) {
    PageClient bad(server->port());
    bad.Send(bytes, binary);
    std::string why;
    while (const auto message = bad.Read(3)) {
      if (!message->binary) why = json::parse(message->bytes).value("error", why);
    }
    EXPECT_TRUE(bad.closed());
    return why;
  };
  for (const auto& [bytes, binary] : nonsense) {
    EXPECT_NE(answer(bytes, binary), "") << bytes.size() << " bytes";
  }
  EXPECT_EQ(answer(std::string(1000, 'x'), true), "a message of 1000 bytes; 4 to 64 are taken");
  // beyond what is read at all the WebSocket ends by its own rules, without words
  EXPECT_EQ(answer(std::string(5000, 'x'), true), "");
  EXPECT_TRUE(inputs().empty()) << "nothing of it reached the simulation";
  EXPECT_TRUE(Eventually([&] { return server->Stats().pages == 1; }));
  Publish(server.get(), 9);
  EXPECT_EQ(NextFrame(&good), 9u);
}

TEST_F(ViewServerTest, AFloodIsStopped) {
  ServerOptions options;
  options.input_rate = 40;  // a machine that takes 40 s for 2000 messages sends no flood
  const auto server = Start(options);
  PageClient page(server->port());
  for (int i = 0; i < 2000 && !page.closed(); ++i) {
    page.Send(EncodeInput({InputType::kPause, 0, 0, {}}));
  }
  std::string last;
  while (const auto message = page.Read(3)) {
    if (!message->binary) last = message->bytes;
  }
  EXPECT_EQ(json::parse(last).value("error", ""),
            "more than 40 messages at once, or 40 a second on average");
  EXPECT_TRUE(Eventually([&] { return server->Stats().pages == 0; }));
  EXPECT_LT(inputs().size(), 1500u);
}

TEST_F(ViewServerTest, EndsWithPagesOpen) {
  auto server = Start();
  PageClient one(server->port()), two(server->port());
  Publish(server.get(), 1);
  const auto begin = std::chrono::steady_clock::now();
  server.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s) << "a page that does not answer";
  while (one.Read(2)) {
  }
  EXPECT_TRUE(one.closed());
}

}  // namespace
}  // namespace silc
