// SPDX-License-Identifier: Apache-2.0
#include "silc/view/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace silc {

void FrameFlow::Sent(std::uint32_t sequence, double taken) {
  in_flight_.emplace_back(sequence, taken);
}

std::optional<double> FrameFlow::Acked(std::uint32_t sequence, double now) {
  const auto found =
      std::ranges::find(in_flight_, sequence, &std::pair<std::uint32_t, double>::first);
  if (found == in_flight_.end()) return std::nullopt;
  const double taken = found->second;
  in_flight_.erase(in_flight_.begin(), found + 1);
  return now - taken;
}

bool HandOnRobot::Ask(std::uint64_t page, double now) {
  if (holder_ && *holder_ != page && now - used_ < kIdle) return false;
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

std::string RandomToken() {
  std::random_device device;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", device());
  return token;
}

}  // namespace silc
