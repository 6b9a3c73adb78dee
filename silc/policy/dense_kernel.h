// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace silc {

/// Rows pulled through a layer at once: one AVX-512 register, two of AVX, four of SSE or NEON.
inline constexpr int kRowLanes = 16;

/// Two products with a float32 weight matrix, in the fastest form this processor has. Chosen once,
/// at run time, so that one binary serves all machines; products are plain IEEE float32 sums in a
/// fixed order, with fused multiply-adds where the processor has them.
struct DenseKernel {
  const char* name;  // "avx512f", "avx2", "portable"
  int panel;         // columns per panel of PackPanels()

  /// Y = scale ∘ (Wᵀ X): pulls kRowLanes rows back through a layer.
  ///   X       depth × kRowLanes, row-major: entry k of all rows side by side
  ///   panels  W, depth × cols, as PackPanels() lays it out
  ///   scale   one factor per column of W; may be null
  ///   Y       cols × kRowLanes, row-major, where cols is rounded up to whole panels; overwritten
  void (*pull_back)(
      const float* X, const float* panels, int depth, int cols, const float* scale, float* Y);

  /// y = W x + b, W given as PackLanes(Wᵀ): 64 outputs side by side.
  ///   x  depth;  b, y  rounded up to whole 64s
  void (*forward)(
      const float* x, const float* lanes, int depth, int outputs, const float* b, float* y);
};

/// The best kernel for the processor this runs on.
const DenseKernel& BestKernel();
/// All kernels this processor can run, best first; for tests.
std::vector<DenseKernel> AvailableKernels();

/// Outputs side by side in forward().
inline constexpr int kForwardLanes = 64;
inline int RoundUp(int n, int step) { return (n + step - 1) / step * step; }

/// W (depth × cols, row-major) cut into panels of `panel` columns, each depth × panel, row-major,
/// one after the other: the order in which pull_back() and forward() read it. The last panel is
/// filled with zeros.
std::vector<float> PackPanels(const float* W, int depth, int cols, int panel);

}  // namespace silc
