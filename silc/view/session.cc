// SPDX-License-Identifier: Apache-2.0
#include "silc/view/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "silc/base/error.h"

namespace silc {

void FrameFlow::Sent(std::uint32_t sequence, double taken) {
  in_flight_.emplace_back(sequence, taken);
  not_shown_.emplace_back(sequence, taken);
  if (not_shown_.size() > kRemembered) not_shown_.pop_front();
}

std::optional<double> FrameFlow::TakeOut(std::uint32_t sequence, double then, Frames* frames) {
  const auto found = std::ranges::find(*frames, sequence, &Frames::value_type::first);
  if (found == frames->end()) return std::nullopt;
  const double taken = found->second;
  frames->erase(frames->begin(), found + 1);
  return then - taken;
}

std::optional<double> FrameFlow::Acked(std::uint32_t sequence, double now) {
  return TakeOut(sequence, now, &in_flight_);
}

std::optional<double> FrameFlow::Shown(std::uint32_t sequence, double presented) {
  return TakeOut(sequence, presented, &not_shown_);
}

bool HandOnRobot::Ask(std::uint64_t page, double now) {
  if (holder_ && *holder_ != page && now - used_ < idle_) return false;
  holder_ = page;
  used_ = now;
  return true;
}

void HandOnRobot::GiveBack(std::uint64_t page) {
  if (IsHeldBy(page)) holder_.reset();
}

bool RateLimit::Take(double now) {
  left_ = std::min(burst_, left_ + rate_ * std::max(0.0, now - last_));
  last_ = now;
  if (left_ < 1) return false;
  left_ -= 1;
  return true;
}

bool IsLoopback(std::string_view host) {
  return host == "127.0.0.1" || host == "localhost" || host == "::1" || host == "[::1]";
}

bool HostAllowed(std::string_view host, std::string_view listens_on, int port) {
  if (!IsLoopback(listens_on)) return true;
  const std::string suffix = fmt::format(":{}", port);
  if (host.ends_with(suffix)) host.remove_suffix(suffix.size());
  return IsLoopback(host);
}

bool OriginAllowed(std::string_view origin, std::string_view host) {
  return origin.empty() || origin == fmt::format("http://{}", host) ||
         origin == fmt::format("https://{}", host);  // behind a proxy that adds TLS
}

bool SameToken(std::string_view a, std::string_view b) {
  unsigned char differs = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    differs |= static_cast<unsigned char>(a[i] ^ b[i]);
  }
  return differs == 0;
}

std::string QueryValue(std::string_view target, std::string_view key) {
  const std::size_t mark = target.find('?');
  if (mark == std::string_view::npos) return "";
  std::string_view rest = target.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find('&'));
    if (item.size() > key.size() && item.starts_with(key) && item[key.size()] == '=') {
      return std::string(item.substr(key.size() + 1));
    }
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
  }
  return "";
}

void CheckToken(std::string_view token) {
  const auto plain = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  if (token.size() >= kTokenLeast && token.size() <= kTokenMost &&
      std::ranges::all_of(token, plain)) {
    return;
  }
  // what was given is a secret, and is not repeated
  throw ConfigError(fmt::format(
      "--token: must be {} to {} letters, digits, '-' or '_', or 'random', which makes such a one",
      kTokenLeast,
      kTokenMost));
}

std::string RandomToken() {
  std::random_device device;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", device());
  return token;
}

}  // namespace silc
