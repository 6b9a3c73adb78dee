// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "silc/policy/dense_kernel.h"
#include "silc/policy/graph.h"

namespace silc {

enum class Activation { kNone, kElu, kRelu, kLeakyRelu, kTanh, kSigmoid, kSoftplus };

/// y = act(W x + b)
struct MlpLayer {
  int inputs = 0;
  int outputs = 0;
  std::vector<float> weight;  // outputs × inputs, row-major
  std::vector<float> bias;    // outputs
  Activation activation = Activation::kNone;
  float alpha = 1.0f;  // of Elu and LeakyRelu
};

/// One step of a normaliser: a number per input added, subtracted, multiplied or divided, or a
/// clip.
struct InputStep {
  enum class Kind { kAdd, kSub, kMul, kDiv, kClip } kind = Kind::kSub;
  std::vector<float> operand;  // one per input; unused by a clip
  float low = 0;               // clip
  float high = 0;
};

/// The shape nearly all robot policies have: a normaliser, then one or several MLPs on the same
/// input whose outputs stand side by side (two actors).
struct MlpNetwork {
  int inputs = 0;
  std::vector<InputStep> prefix;
  std::vector<std::vector<MlpLayer>> branches;

  int outputs() const;
  /// Aborts on sizes that disagree.
  void Check() const;
};

/// The graph's output as an MlpNetwork of one input, or nothing when it has another shape.
std::optional<MlpNetwork> RecogniseMlp(const Graph& graph, int input, int output);

/// The network as a graph: [1, inputs] → [1, outputs]. RecogniseMlp() is its inverse.
Graph MlpGraph(const MlpNetwork& network,
               const std::string& input,
               const std::string& output,
               const GraphLimits& limits = {});

/// One entry of a sparse matrix E, inputs × columns: what column `column` moves input `input` by.
struct ColumnEntry {
  int input;
  int column;
  float value;
};

/// Evaluates an MlpNetwork in float32 and its Jacobian in reverse mode.
///
/// With R = the rows of one branch (15 or 14 outputs), W_l the layers and D_l their activations'
/// slopes, Columns are W_1 E, multiplied out once, so that summing frames or scaling observations
/// costs nothing:
///
///     ∂y/∂x E = D_L W_L D_{L−1} W_{L−1} … D_1 (W_1 E)
///
/// is multiplied from the left: every product has 15 rows. For FALCON's 575-512-256-128-{15,14} and
/// the 90 columns of SummedJacobians that is, per actor of 15 rows,
///     15·128·256 + 15·256·512 + 15·512·90 = 3.1 M multiply-adds,
/// 12.5 Mflop for both (forward tangents: 90 columns through 512·256 + 256·128 + 128·15, 60 Mflop).
///
/// No allocation after construction. Copies share the weights.
class MlpEngine {
 public:
  explicit MlpEngine(const MlpNetwork& network, const DenseKernel& kernel = BestKernel());

  /// W_1 E for a set of columns, packed; made before the loop. The normaliser's slopes are put in
  /// here.
  class Columns {
   public:
    int count() const { return count_; }

   private:
    friend class MlpEngine;
    int count_ = 0;
    std::vector<std::vector<float>> panels_;  // per branch
  };
  Columns MakeColumns(int count, std::span<const ColumnEntry> entries) const;

  int inputs() const { return shared_->network.inputs; }
  int outputs() const { return outputs_; }
  const MlpNetwork& network() const { return shared_->network; }

  /// y = network(x). Keeps the slopes for PullBack().
  void Forward(std::span<const float> x, std::span<float> y);
  /// Whether an input was at a clip of the normaliser in the last Forward(). Columns take the
  /// normaliser as it is inside its clips, so their products do not hold then.
  bool clipped() const { return clipped_; }

  /// Pulls all outputs back to the first layer, at the point of the last Forward().
  void PullBack();
  /// ∂y/∂x E after PullBack(), up to kRowLanes outputs at a time: result[c * kRowLanes + r] is the
  /// derivative of output block.first_output + r along column c.
  struct Block {
    int first_output;
    int rows;
  };
  int num_blocks() const { return static_cast<int>(chunks_.size()); }
  Block Times(const Columns& columns, int block, std::span<float> result) const;
  /// Floats the result of Times() takes.
  std::size_t ResultSize(const Columns& columns) const;

 private:
  // Up to kRowLanes outputs of one branch, pulled back together.
  struct Chunk {
    int branch;
    int first_row;  // in the branch
    int rows;
    int first_output;  // in the network
  };
  struct Shared {
    MlpNetwork network;
    DenseKernel kernel;
    std::vector<std::vector<std::vector<float>>> forward;  // [branch][layer] Wᵀ in lanes
    std::vector<std::vector<std::vector<float>>> bias;     // padded to lanes
    std::vector<std::vector<std::vector<float>>> reverse;  // [branch][layer ≥ 1] W in panels
    std::vector<float> input_slope;                        // of the normaliser, inside its clips
  };

  std::shared_ptr<const Shared> shared_;
  int outputs_ = 0;
  bool clipped_ = false;
  std::vector<Chunk> chunks_;
  std::vector<float> x_;                                // after the normaliser
  std::vector<std::vector<std::vector<float>>> y_;      // [branch][layer] outputs, padded
  std::vector<std::vector<std::vector<float>>> slope_;  // [branch][layer]
  std::vector<std::vector<float>> adjoint_;             // per chunk: width of layer 1 × kRowLanes
  std::vector<float> work_[2];
};

}  // namespace silc
