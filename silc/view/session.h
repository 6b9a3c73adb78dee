// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace silc {

// The rules between a page and the server, without the sockets. Times are seconds of a steady
// clock.

/// Which frames go to one page: the newest, while the page keeps up. A page that has not
/// acknowledged kMaxUnacked frames gets no more until it does, and then the newest only.
class FrameFlow {
 public:
  static constexpr std::size_t kMaxUnacked = 4;

  /// Frames whose picture may still be told of: five seconds of them.
  static constexpr std::size_t kRemembered = 256;

  bool MaySend() const { return in_flight_.size() < kMaxUnacked; }
  /// A frame goes out: its number and when its state was taken.
  void Sent(std::uint32_t sequence, double taken);
  /// The page has got a frame, and with it all before. The time from state to acknowledgement;
  /// nothing when that frame was never sent, or was acknowledged before.
  std::optional<double> Acked(std::uint32_t sequence, double now);
  /// The picture of this frame was presented at `presented`. The time from state to picture, of
  /// this frame alone: those before it may never have been drawn. Nothing when the frame was never
  /// sent, was told of before, or is older than one that was.
  std::optional<double> Shown(std::uint32_t sequence, double presented);

 private:
  using Frames = std::deque<std::pair<std::uint32_t, double>>;
  // the time from the state of frame `sequence` to `then`; it and those before it are forgotten
  static std::optional<double> TakeOut(std::uint32_t sequence, double then, Frames* frames);
  Frames in_flight_, not_shown_;
};

/// Many watch, one pushes. The hand is free, or a page's; a page that asks for it gets it when it
/// is free or when its holder has done nothing for `idle`.
class HandOnRobot {
 public:
  static constexpr double kIdle = 10;  // [s]

  explicit HandOnRobot(double idle = kIdle) : idle_(idle) {}
  /// Whether the page has the hand now.
  bool Ask(std::uint64_t page, double now);
  void GiveBack(std::uint64_t page);
  /// The holder did something.
  void Used(double now) { used_ = now; }
  bool IsHeldBy(std::uint64_t page) const { return holder_ == page; }
  bool is_free() const { return !holder_; }

 private:
  std::optional<std::uint64_t> holder_;
  double idle_, used_ = 0;  // [s]
};

/// At most `rate` messages a second on average, `burst` at once.
class RateLimit {
 public:
  RateLimit(double rate, double burst) : rate_(rate), burst_(burst), left_(burst) {}
  /// Whether one more is within the limit.
  bool Take(double now);

 private:
  double rate_, burst_, left_;
  double last_ = 0;  // [s]
};

/// Whether a request's Host is one that this server answers to. On the loopback only its own names
/// are: a page of another site could otherwise reach the server through a name that it points here.
/// Elsewhere a token guards, and any name is taken.
bool HostAllowed(std::string_view host, std::string_view listens_on, int port);

/// Whether a WebSocket request with this Origin may come in: the page this server served, and
/// programs, which send none.
bool OriginAllowed(std::string_view origin, std::string_view host);

/// Whether a host is one of the loopback's.
bool IsLoopback(std::string_view host);

/// Equal, in a time that does not depend on where they differ.
bool SameToken(std::string_view a, std::string_view b);

/// The value of `key` in a target such as /ws?token=abc&robot=1; "" where it is not.
std::string QueryValue(std::string_view target, std::string_view key);

/// Throws ConfigError unless the token can be written into an address as it is and is long enough
/// not to be guessed: kTokenLeast to kTokenMost of A-Z, a-z, 0-9, - and _.
void CheckToken(std::string_view token);
inline constexpr std::size_t kTokenLeast = 16, kTokenMost = 128;

/// 128 random bits as text.
std::string RandomToken();

}  // namespace silc
