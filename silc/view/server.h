// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "silc/view/protocol.h"

namespace silc {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;    // 0: any that is free
  std::string token;  // pages have to name it; "" for none, on the loopback only
  int max_pages = 64;
  double input_rate = 400;  // [1/s] messages of one page, and [1] at once; a drag sends some 100
  double hand_idle = 10;    // [s] after which a page that does nothing can lose the hand
};

/// What the server asks of the simulation. Called on the server's thread.
struct ServerSource {
  std::string scene_json;
  InputLimits limits;
  std::function<void(const Input&)> apply;
  std::function<std::string(int robot)> recording;  // the bytes of an .npz
  /// What "/" is, instead of the live page; "" for that. With it there is no socket and nothing to
  /// push, and the lines above are not used.
  std::string recording_page;
};

/// Times from a state to something that a page did with its frame.
struct LatencyStats {
  std::uint64_t count = 0;
  double mean = 0, max = 0;  // [s]

  void Add(double latency);
};

struct ServerStats {
  int pages = 0;
  std::uint64_t frames_sent = 0, bytes_sent = 0, refused = 0;
  /// Over all pages, since the last call: until a page acknowledged the frame, and until the
  /// picture of the frame was on the screen. Pages tell of pictures where they are asked to
  /// (page/presented.js), and only of those that were drawn.
  LatencyStats acknowledged, shown;
  double cpu_time = 0;  // [s] of the server's thread since it began
};

/// HTTP and WebSockets for the pages, on a thread of its own. The simulation hands it frames and
/// never waits: a frame that no page can take yet is replaced by the next.
class ViewServer {
 public:
  /// Binds and begins to serve. Throws ConfigError when host and port cannot be had, when a host
  /// beyond the loopback comes without a token, and for tokens as CheckToken() does.
  ViewServer(const ServerOptions& options, ServerSource source);
  /// Closes every page and ends the thread.
  ~ViewServer();
  ViewServer(const ViewServer&) = delete;
  ViewServer& operator=(const ViewServer&) = delete;

  /// "http://127.0.0.1:8080/", with the token where there is one.
  std::string address() const;
  int port() const;

  /// The newest frame, for every page. Any thread.
  void Publish(std::shared_ptr<const std::string> frame);
  /// A sentence for every page. Any thread.
  void Notice(const std::string& text);
  ServerStats Stats();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace silc
