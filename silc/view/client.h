// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace silc {

struct HttpAnswer {
  int status = 0;
  std::string type, body;
};

/// One HTTP request on a connection of its own.
HttpAnswer HttpGet(int port,
                   const std::string& target,
                   const std::string& host = "",
                   const std::string& method = "GET");
/// Raw bytes to the port; what came back until the server closed or two seconds were over.
std::string SendRaw(int port, const std::string& bytes);

/// A page without a browser, for tests and the benchmark: a WebSocket, one message at a time.
class PageClient {
 public:
  struct Message {
    bool binary = false;
    std::string bytes;
  };
  /// Throws std::runtime_error when the server refuses.
  PageClient(int port,
             const std::string& origin = "",
             const std::string& target = "/ws",
             const std::string& host = "");
  ~PageClient();

  void Send(const std::string& bytes, bool binary = true);
  /// The next message; nothing once the server has closed, or after `seconds` without one.
  std::optional<Message> Read(double seconds = 5);
  /// Whether the server has closed it.
  bool closed() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace silc
