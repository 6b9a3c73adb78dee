// SPDX-License-Identifier: Apache-2.0
// Boost.Beast 1.74 uses std::exchange without its header; this one comes first.
#include <utility>

#include "silc/view/server.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <charconv>
#include <chrono>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "silc/base/error.h"
#include "silc/view/page_files.h"
#include "silc/view/session.h"

namespace silc {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using asio::ip::tcp;
using Error = beast::error_code;
using nlohmann::json;

constexpr std::size_t kMaxTexts = 32;  // sentences waiting for one page
// What is longer than any input is read up to here, so that the page can be told why it is closed;
// beyond that the WebSocket ends without words.
constexpr std::size_t kMaxReadBytes = 4096;
constexpr std::size_t kMaxHeaderBytes = 16384;
constexpr auto kHttpTimeout = std::chrono::seconds(15);
constexpr std::size_t kSlowestBytesPerSecond = 500000;  // of a large answer; slower is cut off

double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double ThreadCpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <typename T>
T FrameField(const std::string& frame, std::size_t offset) {
  T value;
  std::memcpy(&value, frame.data() + offset, sizeof(T));
  return value;
}

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

class PageSession;

// What all sessions share. Everything but `newest` is the server thread's own.
struct Hub {
  ServerOptions options;
  ServerSource source;
  int port = 0;
  std::set<std::shared_ptr<PageSession>> pages;
  HandOnRobot hand;
  std::uint64_t next_page = 1;
  int connections = 0;

  std::mutex mutex;  // guards the lines below
  std::shared_ptr<const std::string> newest;
  bool distributing = false;
  ServerStats stats;

  void TellHands();
};

// One page over its WebSocket.
class PageSession : public std::enable_shared_from_this<PageSession> {
 public:
  PageSession(beast::tcp_stream stream, std::shared_ptr<Hub> hub)
      : socket_(std::move(stream)),
        hub_(std::move(hub)),
        id_(hub_->next_page++),
        rate_(hub_->options.input_rate, hub_->options.input_rate) {}

  std::uint64_t id() const { return id_; }

  void Accept(const http::request<http::empty_body>& request) {
    socket_.set_option(websocket::stream_base::timeout::suggested(beast::role_type::server));
    socket_.read_message_max(kMaxReadBytes);
    socket_.async_accept(request, [self = shared_from_this()](Error error) {
      if (!error) self->Begin();
    });
  }

  // The newest frame goes out as soon as the page can take one.
  void Offer(const std::shared_ptr<const std::string>& frame) {
    offered_ = frame;
    Write();
  }

  void Tell(const json& words) {
    if (texts_.size() >= kMaxTexts) return;
    texts_.push_back(words.dump(-1, ' ', false, json::error_handler_t::replace));
    Write();
  }

  // Says why and closes; nothing this page sends is looked at any more.
  void Refuse(const std::string& why) {
    if (closing_) return;
    CountRefused();
    Tell({{"error", why}});
    closing_ = true;
    Write();
  }

  void Close() {
    closing_ = true;
    Write();
  }

 private:
  void CountRefused() {
    const std::scoped_lock lock(hub_->mutex);
    ++hub_->stats.refused;
  }

  void Begin() {
    if (static_cast<int>(hub_->pages.size()) >= hub_->options.max_pages) {
      Refuse(fmt::format("{} pages are open already, which is the most", hub_->pages.size()));
      return;
    }
    hub_->pages.insert(shared_from_this());
    if (hub_->hand.is_free()) hub_->hand.Ask(id_, SteadySeconds());
    hub_->TellHands();
    {
      const std::scoped_lock lock(hub_->mutex);
      offered_ = hub_->newest;
    }
    Write();
    Read();
  }

  void Read() {
    socket_.async_read(buffer_, [self = shared_from_this()](Error error, std::size_t) {
      if (error) {
        if (error == websocket::error::message_too_big) self->CountRefused();
        self->Leave();
        return;
      }
      self->Take();
      self->buffer_.clear();
      if (!self->closing_) {
        self->Read();
      } else {
        self->Leave();
      }
    });
  }

  // One message. Whatever is wrong with it ends this page and nothing else.
  void Take() {
    const double now = SteadySeconds();
    if (!rate_.Take(now)) {
      Refuse(fmt::format("more than {0} messages at once, or {0} a second on average",
                         hub_->options.input_rate));
      return;
    }
    const auto data = buffer_.cdata();
    const std::string_view bytes(static_cast<const char*>(data.data()), data.size());
    std::string error;
    const std::optional<Input> input =
        socket_.got_binary() ? DecodeInput(bytes, hub_->source.limits, &error) : std::nullopt;
    if (!input) {
      Refuse(error.empty() ? "a text message; only binary ones are taken" : error);
      return;
    }
    if (input->type == InputType::kAck || input->type == InputType::kShown) {
      const bool shown = input->type == InputType::kShown;
      const std::optional<double> latency =
          shown ? flow_.Shown(input->index, now - input->value[0]) : flow_.Acked(input->index, now);
      if (latency) {
        const std::scoped_lock lock(hub_->mutex);
        (shown ? hub_->stats.shown : hub_->stats.acknowledged).Add(*latency);
      }
      Write();
      return;
    }
    if (input->type == InputType::kHand) {
      if (input->index == 0)
        LetGo();
      else
        TakeInHand(now);
      hub_->TellHands();
      return;
    }
    // spectators may ask for anything, and nothing happens: their page says so before
    if (!hub_->hand.IsHeldBy(id_)) return;
    hub_->hand.Used(now);
    hub_->source.apply(*input);
  }

  void TakeInHand(double now) {
    const bool taken = !hub_->hand.is_free() && !hub_->hand.IsHeldBy(id_);
    if (!hub_->hand.Ask(id_, now)) {
      Tell({{"notice",
             fmt::format("another page has its hand on the robots and has used it within {} s",
                         hub_->options.hand_idle)}});
    } else if (taken) {
      Release();  // what the idle holder pulled
    }
  }

  void LetGo() {
    if (!hub_->hand.IsHeldBy(id_)) return;
    hub_->hand.GiveBack(id_);
    Release();
  }

  void Release() {
    Input release;
    release.type = InputType::kRelease;
    hub_->source.apply(release);
  }

  void Leave() {
    if (left_) return;
    left_ = true;
    LetGo();
    hub_->pages.erase(shared_from_this());
    hub_->TellHands();
  }

  // Words before pictures; one write at a time.
  void Write() {
    if (writing_ || closed_) return;
    if (!texts_.empty()) {
      writing_ = true;
      socket_.binary(false);
      text_ = std::move(texts_.front());
      texts_.pop_front();
      socket_.async_write(asio::buffer(text_), Written());
      return;
    }
    if (closing_) {
      closed_ = true;
      socket_.async_close(websocket::close_code::policy_error,
                          [self = shared_from_this()](Error) { self->Leave(); });
      return;
    }
    if (!offered_ || !flow_.MaySend()) return;
    writing_ = true;
    frame_ = std::move(offered_);
    offered_ = nullptr;
    flow_.Sent(FrameField<std::uint32_t>(*frame_, 8), FrameField<double>(*frame_, 24));
    {
      const std::scoped_lock lock(hub_->mutex);
      ++hub_->stats.frames_sent;
      hub_->stats.bytes_sent += frame_->size();
    }
    socket_.binary(true);
    socket_.async_write(asio::buffer(*frame_), Written());
  }

  std::function<void(Error, std::size_t)> Written() {
    return [self = shared_from_this()](Error error, std::size_t) {
      self->writing_ = false;
      self->frame_ = nullptr;
      if (error) {
        self->Leave();
      } else {
        self->Write();
      }
    };
  }

  websocket::stream<beast::tcp_stream> socket_;
  std::shared_ptr<Hub> hub_;
  std::uint64_t id_;
  beast::flat_buffer buffer_;
  FrameFlow flow_;
  RateLimit rate_;
  std::deque<std::string> texts_;
  std::string text_;                                    // being written
  std::shared_ptr<const std::string> offered_, frame_;  // newest; being written
  bool writing_ = false, closing_ = false, closed_ = false, left_ = false;
};

void Hub::TellHands() {
  for (const auto& page : pages) {
    const char* whose = hand.is_free() ? "free" : hand.IsHeldBy(page->id()) ? "yours" : "taken";
    page->Tell({{"hand", whose}, {"pages", pages.size()}});
  }
}

// One HTTP connection, until it becomes a WebSocket or ends.
class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  HttpSession(tcp::socket socket, std::shared_ptr<Hub> hub)
      : stream_(std::move(socket)), hub_(std::move(hub)) {
    ++hub_->connections;
  }
  ~HttpSession() { --hub_->connections; }

  void Read() {
    parser_.emplace();
    parser_->header_limit(kMaxHeaderBytes);
    parser_->body_limit(0);
    stream_.expires_after(kHttpTimeout);
    http::async_read(
        stream_, buffer_, *parser_, [self = shared_from_this()](Error error, std::size_t) {
          if (!error) {
            self->Answer();
          } else if (error != http::error::end_of_stream && error != beast::error::timeout) {
            self->Send(http::status::bad_request, "text/plain", "this is no request\n");
          }
        });
  }

 private:
  void Answer() {
    const auto& request = parser_->get();
    const std::string host(View(request[http::field::host]));
    const std::string target(View(request.target()));
    const std::string path = target.substr(0, target.find('?'));
    if (!HostAllowed(host, hub_->options.host, hub_->port)) {
      Send(http::status::forbidden, "text/plain", "this server answers to its own name only\n");
      return;
    }
    const bool known =
        hub_->options.token.empty() || SameToken(QueryValue(target, "token"), hub_->options.token);
    const bool live = hub_->source.recording_page.empty();
    if (websocket::is_upgrade(request)) {
      const std::string origin(View(request[http::field::origin]));
      if (!live || path != "/ws" || !known || !OriginAllowed(origin, host)) {
        {
          const std::scoped_lock lock(hub_->mutex);
          ++hub_->stats.refused;
        }
        Send(http::status::forbidden, "text/plain", "wrong origin, token or path\n");
        return;
      }
      stream_.expires_never();
      http::request<http::empty_body> upgrade;
      upgrade.base() = request.base();
      std::make_shared<PageSession>(std::move(stream_), hub_)->Accept(upgrade);
      return;
    }
    if (request.method() != http::verb::get && request.method() != http::verb::head) {
      Send(http::status::method_not_allowed, "text/plain", "GET and HEAD are answered\n");
      return;
    }
    if (!known && !path.starts_with("/page/") && path != "/favicon.ico") {
      Send(http::status::forbidden,
           "text/plain",
           "the address needs its token: silc view prints it\n");
    } else if (!live && path == "/") {
      Send(http::status::ok, "text/html; charset=utf-8", hub_->source.recording_page);
    } else if (live && path == "/scene.json") {
      Send(http::status::ok, "application/json", hub_->source.scene_json);
    } else if (live && path == "/recording.npz") {
      SendRecording(QueryValue(target, "robot"));
    } else if (const PageFile* file = FindPageFile(path == "/" ? "/page/index.html" : path)) {
      Send(http::status::ok, file->type, std::string(file->bytes));
    } else {
      Send(http::status::not_found, "text/plain", "there is nothing here\n");
    }
  }

  void SendRecording(const std::string& robot) {
    unsigned index = 0;
    const auto read = std::from_chars(robot.data(), robot.data() + robot.size(), index);
    if (read.ec != std::errc() || read.ptr != robot.data() + robot.size() ||
        index >= hub_->source.limits.robots) {
      Send(http::status::bad_request, "text/plain", "there is no such robot\n");
      return;
    }
    Send(http::status::ok,
         "application/octet-stream",
         hub_->source.recording(static_cast<int>(index)));
  }

  void Send(http::status status, std::string_view type, std::string body) {
    const bool head =
        parser_ && parser_->is_header_done() && parser_->get().method() == http::verb::head;
    const bool keep = status == http::status::ok && parser_->get().keep_alive();
    response_ = {};
    response_.version(11);
    response_.result(status);
    response_.set(http::field::server, "silc");
    response_.set(http::field::content_type, beast::string_view(type.data(), type.size()));
    response_.set(http::field::cache_control, "no-store");
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("Referrer-Policy", "no-referrer");
    response_.set(
        "Content-Security-Policy",
        "default-src 'self'; script-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'");
    response_.keep_alive(keep);
    const std::size_t size = body.size();
    if (!head) response_.body() = std::move(body);
    response_.content_length(size);
    // a recording of ten minutes has 30 MB
    stream_.expires_after(kHttpTimeout + std::chrono::seconds(size / kSlowestBytesPerSecond));
    http::async_write(
        stream_, response_, [self = shared_from_this(), keep](Error error, std::size_t) {
          if (!error && keep) {
            self->Read();
            return;
          }
          Error ignored;
          self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
        });
  }

  beast::tcp_stream stream_;
  std::shared_ptr<Hub> hub_;
  beast::flat_buffer buffer_{kMaxHeaderBytes};
  std::optional<http::request_parser<http::empty_body>> parser_;
  http::response<http::string_body> response_;
};

}  // namespace

void LatencyStats::Add(double latency) {
  ++count;
  mean += (latency - mean) / static_cast<double>(count);
  max = std::max(max, latency);
}

struct ViewServer::Impl {
  Impl() : acceptor(context) {}

  void Accept() {
    acceptor.async_accept([this](Error error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;  // closed
      if (error) {
        Accept();  // one that went away while it was let in
        return;
      }
      Error ignored;
      // without this a frame waits for the acknowledgement of the one before: 46 ms instead of 2
      socket.set_option(tcp::no_delay(true), ignored);
      if (hub->connections < 4 * hub->options.max_pages) {
        std::make_shared<HttpSession>(std::move(socket), hub)->Read();
      }
      Accept();
    });
  }

  void Distribute() {
    std::shared_ptr<const std::string> frame;
    {
      const std::scoped_lock lock(hub->mutex);
      hub->distributing = false;
      frame = hub->newest;
      hub->stats.cpu_time = ThreadCpuSeconds();
    }
    // a copy: a page that breaks leaves the set while it is walked over
    const std::vector<std::shared_ptr<PageSession>> pages(hub->pages.begin(), hub->pages.end());
    for (const auto& page : pages) page->Offer(frame);
  }

  // Has `question` answered on the server's thread.
  template <typename Question>
  auto Ask(Question question) {
    auto answer = std::make_shared<std::promise<decltype(question())>>();
    asio::post(context, [answer, question] { answer->set_value(question()); });
    return answer->get_future().get();
  }

  asio::io_context context{1};
  // keeps the thread there to answer while no socket is open
  asio::executor_work_guard<asio::io_context::executor_type> guard{context.get_executor()};
  tcp::acceptor acceptor;
  std::shared_ptr<Hub> hub = std::make_shared<Hub>();
  std::jthread thread;
};

ViewServer::ViewServer(const ServerOptions& options, ServerSource source)
    : impl_(std::make_unique<Impl>()) {
  if (!IsLoopback(options.host) && options.token.empty()) {
    throw ConfigError(
        fmt::format("--host {}: others could push the robot: give a --token, or 'random' for one",
                    options.host));
  }
  if (!options.token.empty()) CheckToken(options.token);
  Hub& hub = *impl_->hub;
  hub.options = options;
  hub.hand = HandOnRobot(options.hand_idle);
  hub.source = std::move(source);
  Error error;
  const std::string host = options.host == "localhost" ? "127.0.0.1" : options.host;
  const auto address = asio::ip::make_address(host, error);
  if (error) throw ConfigError(fmt::format("--host {}: must be a numeric address", options.host));
  const tcp::endpoint endpoint(address, static_cast<std::uint16_t>(options.port));
  impl_->acceptor.open(endpoint.protocol(), error);
  if (!error) impl_->acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) impl_->acceptor.bind(endpoint, error);
  if (!error) impl_->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    throw ConfigError(fmt::format("--host {} --port {}: {}; --port 0 takes any that is free",
                                  options.host,
                                  options.port,
                                  error.message()));
  }
  hub.port = impl_->acceptor.local_endpoint().port();
  impl_->Accept();
  impl_->thread = std::jthread([impl = impl_.get()] { impl->context.run(); });
}

ViewServer::~ViewServer() {
  asio::post(impl_->context, [impl = impl_.get()] {
    Error ignored;
    impl->acceptor.close(ignored);
    const std::vector<std::shared_ptr<PageSession>> pages(impl->hub->pages.begin(),
                                                          impl->hub->pages.end());
    for (const auto& page : pages) page->Close();
  });
  // a page that does not answer the goodbye is left behind
  for (int i = 0; i < 30; ++i) {
    if (impl_->Ask([impl = impl_.get()] { return impl->hub->pages.size(); }) == 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  impl_->context.stop();
  impl_->thread.join();
  impl_->hub->pages.clear();
}

std::string ViewServer::address() const {
  const ServerOptions& options = impl_->hub->options;
  const bool six = options.host.find(':') != std::string::npos;
  return fmt::format("http://{}:{}/{}",
                     six ? "[" + options.host + "]" : options.host,
                     impl_->hub->port,
                     options.token.empty() ? "" : "?token=" + options.token);
}

int ViewServer::port() const { return impl_->hub->port; }

void ViewServer::Publish(std::shared_ptr<const std::string> frame) {
  {
    const std::scoped_lock lock(impl_->hub->mutex);
    impl_->hub->newest = std::move(frame);
    if (std::exchange(impl_->hub->distributing, true)) return;
  }
  asio::post(impl_->context, [impl = impl_.get()] { impl->Distribute(); });
}

void ViewServer::Notice(const std::string& text) {
  asio::post(impl_->context, [impl = impl_.get(), text] {
    const std::vector<std::shared_ptr<PageSession>> pages(impl->hub->pages.begin(),
                                                          impl->hub->pages.end());
    for (const auto& page : pages) page->Tell({{"notice", text}});
  });
}

ServerStats ViewServer::Stats() {
  const std::size_t pages = impl_->Ask([impl = impl_.get()] { return impl->hub->pages.size(); });
  const std::scoped_lock lock(impl_->hub->mutex);
  Hub& hub = *impl_->hub;
  ServerStats stats = hub.stats;
  stats.pages = static_cast<int>(pages);
  hub.stats.acknowledged = hub.stats.shown = {};
  return stats;
}

}  // namespace silc
