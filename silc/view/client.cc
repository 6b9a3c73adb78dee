// SPDX-License-Identifier: Apache-2.0
// Boost.Beast 1.74 uses std::exchange without its header; this one comes first.
#include <utility>

#include "silc/view/client.h"

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <chrono>
#include <stdexcept>

namespace silc {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using asio::ip::tcp;

tcp::endpoint Here(int port) {
  return {asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(port)};
}

std::string HostOf(int port, const std::string& host) {
  return host.empty() ? fmt::format("127.0.0.1:{}", port) : host;
}

}  // namespace

HttpAnswer HttpGet(int port,
                   const std::string& target,
                   const std::string& host,
                   const std::string& method) {
  asio::io_context context;
  tcp::socket socket(context);
  socket.connect(Here(port));
  http::request<http::empty_body> request(http::string_to_verb(method), target, 11);
  request.set(http::field::host, HostOf(port, host));
  http::write(socket, request);
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(64 << 20);
  parser.skip(method == "HEAD");
  http::read(socket, buffer, parser);
  const auto& answer = parser.get();
  return {static_cast<int>(answer.result_int()),
          std::string(answer[http::field::content_type]),
          answer.body()};
}

std::string SendRaw(int port, const std::string& bytes) {
  asio::io_context context;
  beast::tcp_stream stream(context);
  stream.connect(Here(port));
  stream.expires_after(std::chrono::seconds(2));
  std::string got(1 << 16, '\0');
  std::size_t size = 0;
  beast::error_code error;
  asio::write(stream.socket(), asio::buffer(bytes), error);
  stream.async_read_some(asio::buffer(got), [&](beast::error_code, std::size_t n) { size = n; });
  context.run();
  got.resize(size);
  return got;
}

struct PageClient::Impl {
  asio::io_context context;
  websocket::stream<beast::tcp_stream> socket{context};
  beast::flat_buffer buffer;
  bool closed = false;
};

PageClient::PageClient(int port,
                       const std::string& origin,
                       const std::string& target,
                       const std::string& host)
    : impl_(std::make_unique<Impl>()) {
  beast::get_lowest_layer(impl_->socket).connect(Here(port));
  beast::get_lowest_layer(impl_->socket).socket().set_option(tcp::no_delay(true));
  impl_->socket.set_option(websocket::stream_base::decorator([&](websocket::request_type& request) {
    if (!origin.empty()) request.set(http::field::origin, origin);
  }));
  beast::error_code error;
  impl_->socket.handshake(HostOf(port, host), target, error);
  if (error) throw std::runtime_error(error.message());
}

PageClient::~PageClient() = default;

void PageClient::Send(const std::string& bytes, bool binary) {
  impl_->socket.binary(binary);
  beast::error_code error;
  impl_->socket.write(asio::buffer(bytes), error);
  if (error) impl_->closed = true;
}

std::optional<PageClient::Message> PageClient::Read(double seconds) {
  if (impl_->closed) return std::nullopt;
  beast::get_lowest_layer(impl_->socket)
      .expires_after(std::chrono::milliseconds(static_cast<int>(1000 * seconds)));
  std::optional<Message> message;
  impl_->buffer.clear();
  impl_->socket.async_read(impl_->buffer, [&](beast::error_code error, std::size_t) {
    if (error) {
      impl_->closed = true;
      return;
    }
    message = Message{impl_->socket.got_binary(), beast::buffers_to_string(impl_->buffer.data())};
  });
  impl_->context.restart();
  impl_->context.run();
  return message;
}

bool PageClient::closed() const { return impl_->closed; }

}  // namespace silc
