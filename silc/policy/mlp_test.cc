// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/mlp.h"

#include <gtest/gtest.h>

#include <memory>

#include "silc/policy/index.h"
#include "silc/policy/test_networks.h"

namespace silc {
namespace {

// ∂y/∂x of the engine, row-major, by unit columns.
std::vector<float> EngineJacobian(MlpEngine* engine) {
  std::vector<ColumnEntry> entries;
  for (int i = 0; i < engine->inputs(); ++i) entries.push_back({i, i, 1.0f});
  const MlpEngine::Columns columns = engine->MakeColumns(engine->inputs(), entries);
  engine->PullBack();
  std::vector<float> result(engine->ResultSize(columns));
  std::vector<float> jacobian(U(engine->outputs()) * U(engine->inputs()), -1.0f);
  for (int b = 0; b < engine->num_blocks(); ++b) {
    const MlpEngine::Block block = engine->Times(columns, b, result);
    for (int r = 0; r < block.rows; ++r) {
      for (int c = 0; c < engine->inputs(); ++c) {
        jacobian[U(block.first_output + r) * U(engine->inputs()) + U(c)] =
            result[U(c * kRowLanes + r)];
      }
    }
  }
  return jacobian;
}

// Values and Jacobian of the fast path against the graph in double precision, which is another
// program.
void ExpectSame(const MlpNetwork& network, const DenseKernel& kernel, std::uint64_t seed) {
  Rng rng(seed);
  MlpEngine engine(network, kernel);
  GraphEvaluator<double> graph(std::make_shared<const Graph>(MlpGraph(network, "x", "y")));
  std::vector<float> x = RandomFloats(&rng, U(network.inputs)), y(U(network.outputs()));
  std::copy(x.begin(), x.end(), graph.input(0).begin());
  graph.Evaluate();
  engine.Forward(x, y);
  ASSERT_FALSE(engine.clipped());
  // a few layers of float32 sums over up to 575 terms
  for (std::size_t i = 0; i < y.size(); ++i)
    EXPECT_NEAR(y[i], graph.output(0)[i], 2e-5) << kernel.name << " " << i;
  const std::vector<double> exact = GraphJacobian(&graph, 0, 0);
  const std::vector<float> fast = EngineJacobian(&engine);
  double worst = 0;
  for (std::size_t i = 0; i < exact.size(); ++i)
    worst = std::max(worst, std::abs(exact[i] - fast[i]));
  EXPECT_LT(worst, 2e-5) << kernel.name;
}

TEST(Mlp, ReverseModeEqualsForwardTangentsOfTheGraph) {
  Rng rng(5);
  const MlpNetwork network = RandomTwoActors(&rng, 50, 15, 14);
  for (const DenseKernel& kernel : AvailableKernels()) ExpectSame(network, kernel, 6);
}

TEST(Mlp, EveryActivationAndDepthFrom1To4) {
  Rng rng(7);
  for (const Activation activation : {Activation::kElu,
                                      Activation::kRelu,
                                      Activation::kLeakyRelu,
                                      Activation::kTanh,
                                      Activation::kSigmoid,
                                      Activation::kSoftplus}) {
    for (int depth = 1; depth <= 4; ++depth) {
      MlpNetwork network;
      network.inputs = 20;
      std::vector<int> widths(U(depth - 1), 30);
      widths.push_back(37);  // three blocks of rows
      network.branches.push_back(RandomLayers(&rng, 20, widths, activation));
      for (auto& layer : network.branches[0]) layer.alpha = 0.7f;
      network.branches[0].back().activation = activation;
      ExpectSame(network, BestKernel(), 8);
    }
  }
}

TEST(Mlp, ReverseModeEqualsCentralDifferences) {
  Rng rng(9);
  const MlpNetwork network = RandomTwoActors(&rng, 24, 6, 5);
  MlpEngine engine(network);
  GraphEvaluator<double> graph(std::make_shared<const Graph>(MlpGraph(network, "x", "y")));
  const std::vector<float> x = RandomFloats(&rng, 24);
  std::vector<float> y(11);
  engine.Forward(x, y);
  std::copy(x.begin(), x.end(), graph.input(0).begin());
  const std::vector<double> differences = DifferenceJacobian(&graph, 0, 0, 1e-6);
  const std::vector<float> fast = EngineJacobian(&engine);
  // Elu's second derivative jumps at 0: differences are off by h where one is crossed; the rest is
  // float32
  for (std::size_t i = 0; i < fast.size(); ++i) EXPECT_NEAR(fast[i], differences[i], 1e-5);
}

TEST(Mlp, ColumnsSumAndScaleInputs) {
  Rng rng(10);
  const MlpNetwork network = RandomTwoActors(&rng, 12, 3, 2);
  MlpEngine engine(network);
  std::vector<float> x = RandomFloats(&rng, 12), y(5);
  engine.Forward(x, y);
  const std::vector<float> J = EngineJacobian(&engine);
  const std::vector<ColumnEntry> entries = {{0, 0, 2.0f}, {5, 0, 3.0f}, {11, 1, -1.0f}};
  const MlpEngine::Columns columns = engine.MakeColumns(2, entries);
  std::vector<float> result(engine.ResultSize(columns));
  for (int b = 0; b < engine.num_blocks(); ++b) {
    const MlpEngine::Block block = engine.Times(columns, b, result);
    for (int r = 0; r < block.rows; ++r) {
      const float* row = J.data() + U(block.first_output + r) * 12;
      EXPECT_NEAR(result[U(r)], 2 * row[0] + 3 * row[5], 1e-5);
      EXPECT_NEAR(result[U(kRowLanes + r)], -row[11], 1e-5);
    }
  }
}

TEST(Mlp, TellsWhenTheNormaliserClips) {
  Rng rng(11);
  MlpEngine engine(RandomTwoActors(&rng, 12, 3, 2));
  std::vector<float> x(12, 0.0f), y(5);
  engine.Forward(x, y);
  EXPECT_FALSE(engine.clipped());
  x[7] = 100;
  engine.Forward(x, y);
  EXPECT_TRUE(engine.clipped());
}

void ExpectEqual(const MlpNetwork& a, const MlpNetwork& b) {
  ASSERT_EQ(a.inputs, b.inputs);
  ASSERT_EQ(a.prefix.size(), b.prefix.size());
  for (std::size_t i = 0; i < a.prefix.size(); ++i) {
    EXPECT_EQ(a.prefix[i].kind, b.prefix[i].kind);
    EXPECT_EQ(a.prefix[i].operand, b.prefix[i].operand);
    EXPECT_EQ(a.prefix[i].low, b.prefix[i].low);
    EXPECT_EQ(a.prefix[i].high, b.prefix[i].high);
  }
  ASSERT_EQ(a.branches.size(), b.branches.size());
  for (std::size_t i = 0; i < a.branches.size(); ++i) {
    ASSERT_EQ(a.branches[i].size(), b.branches[i].size());
    for (std::size_t l = 0; l < a.branches[i].size(); ++l) {
      EXPECT_EQ(a.branches[i][l].weight, b.branches[i][l].weight);
      EXPECT_EQ(a.branches[i][l].bias, b.branches[i][l].bias);
      EXPECT_EQ(a.branches[i][l].activation, b.branches[i][l].activation);
    }
  }
}

TEST(RecogniseMlp, FindsWhatMlpGraphBuilt) {
  Rng rng(12);
  const MlpNetwork network = RandomTwoActors(&rng, 12, 3, 2);
  const Graph graph = MlpGraph(network, "x", "y");
  const auto found = RecogniseMlp(graph, 0, 0);
  ASSERT_TRUE(found.has_value());
  ExpectEqual(network, *found);
}

TEST(RecogniseMlp, SeesThroughMatMulAddReshapesAndSlices) {
  Rng rng(13);
  GraphBuilder b;
  const ValueId x = b.AddInput("x", {1, 1, 6});
  const ValueId flat = b.AddReshape("flatten", x, {1, 6});
  // one branch sees elements 1..4 only, the other a column times a matrix
  const ValueId part = b.AddSlice("slice", flat, {0, 1}, {1, 1}, {1, 4});
  ValueId h = b.AddMatMul("mm", part, b.AddConstant("w", {4, 5}, RandomFloats(&rng, 20)));
  h = b.AddUnary(Op::kElu,
                 "elu",
                 b.AddBinary(Op::kAdd, "add", b.AddConstant("b", {5}, RandomFloats(&rng, 5)), h),
                 1.0f);
  const ValueId column = b.AddReshape("column", flat, {6, 1});
  const ValueId k = b.AddReshape(
      "row", b.AddMatMul("wx", b.AddConstant("v", {3, 6}, RandomFloats(&rng, 18)), column), {1, 3});
  b.AddOutput("y", b.AddConcat("cat", {h, k}, 1));
  const auto graph = std::make_shared<const Graph>(b.Finish());
  const auto network = RecogniseMlp(*graph, 0, 0);
  ASSERT_TRUE(network.has_value());
  MlpEngine engine(*network);
  GraphEvaluator<double> evaluator(graph);
  const std::vector<float> values = RandomFloats(&rng, 6);
  std::copy(values.begin(), values.end(), evaluator.input(0).begin());
  evaluator.Evaluate();
  std::vector<float> y(8);
  engine.Forward(values, y);
  const std::vector<double> exact = GraphJacobian(&evaluator, 0, 0);
  const std::vector<float> fast = EngineJacobian(&engine);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(y[i], evaluator.output(0)[i], 1e-5);
  for (std::size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(fast[i], exact[i], 1e-5);
}

// Written out, a trunk that 29 actors share is there 29 times: 1.4 GB of one matrix of 49 MB.
TEST(RecogniseMlp, ATrunkThatIsCopiedTooOftenIsLeftAlone) {
  constexpr int kWide = 3500, kActors = 29;
  GraphBuilder b;
  const ValueId x = b.AddInput("x", {1, 3});
  ValueId h = b.AddMatMul("in", x, b.AddConstant("w0", {3, kWide}, std::vector<float>(3 * kWide)));
  h = b.AddMatMul(
      "trunk", h, b.AddConstant("w1", {kWide, kWide}, std::vector<float>(kWide * kWide)));
  const ValueId last = b.AddConstant("w2", {kWide, 1}, std::vector<float>(kWide));
  std::vector<ValueId> actors;
  for (int k = 0; k < kActors; ++k) {
    actors.push_back(b.AddMatMul("out" + std::to_string(k), h, last));
  }
  b.AddOutput("y", b.AddConcat("cat", actors, 1));
  EXPECT_FALSE(RecogniseMlp(b.Finish(), 0, 0));
}

TEST(RecogniseMlp, LeavesOtherShapesAlone) {
  Rng rng(14);
  const auto weights = [&](GraphBuilder* b, ValueId x, int in, int out) {
    return b->AddGemm("g", x, b->AddConstant("w", {in, out}, RandomFloats(&rng, U(in * out))), -1);
  };
  {
    // a residual connection
    GraphBuilder b;
    const ValueId x = b.AddInput("x", {1, 4});
    b.AddOutput("y", b.AddBinary(Op::kAdd, "a", x, weights(&b, x, 4, 4)));
    EXPECT_FALSE(RecogniseMlp(b.Finish(), 0, 0).has_value());
  }
  {
    // two inputs
    GraphBuilder b;
    const ValueId x = b.AddInput("x", {1, 4}), z = b.AddInput("z", {1, 4});
    b.AddOutput("y", b.AddConcat("c", {weights(&b, x, 4, 2), weights(&b, z, 4, 2)}, 1));
    EXPECT_FALSE(RecogniseMlp(b.Finish(), 0, 0).has_value());
  }
  {
    // a layer norm between layers
    GraphBuilder b;
    const ValueId x = b.AddInput("x", {1, 4});
    const ValueId n = b.AddLayerNorm(
        "n", weights(&b, x, 4, 4), b.AddConstant("s", {4}, {1, 1, 1, 1}), -1, 1, 1e-5f);
    b.AddOutput("y", weights(&b, n, 4, 2));
    EXPECT_FALSE(RecogniseMlp(b.Finish(), 0, 0).has_value());
  }
  {
    // no layer at all
    GraphBuilder b;
    b.AddOutput("y", b.AddUnary(Op::kTanh, "t", b.AddInput("x", {1, 4})));
    EXPECT_FALSE(RecogniseMlp(b.Finish(), 0, 0).has_value());
  }
}

}  // namespace
}  // namespace silc
