// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/method.h"

namespace silc {

const std::vector<std::string>& MethodNames() {
  static const std::vector<std::string> names = {
      "baseline", "lcp", "sn-lcp", "scalar-lcp", "alcp", "silc-paper", "silc"};
  return names;
}

const std::string& Name(Method method) { return MethodNames()[static_cast<std::size_t>(method)]; }

bool HasBudget(const std::string& method) { return !BoundedBy(method).empty(); }

std::string BoundedBy(const std::string& method) {
  if (method == Name(Method::kSilc)) return "(S7c) on K_s";
  if (method == Name(Method::kSilcPaper)) return "(S7a) on K₁";
  return "";
}

}  // namespace silc
