// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace silc {

/// The training methods of docs/penalty.md, in the order in which tables show them.
enum class Method { kBaseline, kLcp, kSnLcp, kScalarLcp, kAlcp, kSilcPaper, kSilc };

/// Their names as users write them and policy files carry them (silc_method), in the same order.
/// This is the one list of methods: the trainer, the report and the records read it.
const std::vector<std::string>& MethodNames();
const std::string& Name(Method method);

/// Whether the method is trained under a stiffness budget.
bool HasBudget(const std::string& method);
/// What such a training bounds, "(S7a) on K₁"; "" for the other methods.
std::string BoundedBy(const std::string& method);

}  // namespace silc
