// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace silc {

struct TestAnswer {
  int status = 0;
  std::string type, body;
};

/// One HTTP request on a connection of its own.
TestAnswer TestGet(int port,
                   const std::string& target,
                   const std::string& host = "",
                   const std::string& method = "GET");
/// Raw bytes to the port; what came back until the server closed or two seconds were over.
std::string TestSendRaw(int port, const std::string& bytes);

/// A page without a browser: a WebSocket, one message at a time.
class TestPage {
 public:
  struct Message {
    bool binary = false;
    std::string bytes;
  };
  /// Throws std::runtime_error when the server refuses.
  TestPage(int port,
           const std::string& origin = "",
           const std::string& target = "/ws",
           const std::string& host = "");
  ~TestPage();

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
