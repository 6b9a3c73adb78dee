// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "silc/base/error.h"
#include "silc/policy/test_networks.h"

namespace silc {
namespace {

using Values = std::vector<double>;

// One node on one input: its value by hand, its tangents against central differences.
struct Case {
  const char* name;
  Shape shape;
  Values x;
  std::function<ValueId(GraphBuilder*, ValueId)> build;
  Values y;  // worked by hand
};

std::vector<Case> UnaryCases() {
  const auto unary = [](Op op, float alpha = 0, float beta = 0) {
    return [=](GraphBuilder* b, ValueId x) { return b->AddUnary(op, "n", x, alpha, beta); };
  };
  const double e1 = std::exp(1.0);
  return {
      {"Elu",
       {3},
       {1.0, -1.0, -0.5},
       unary(Op::kElu, 2.0f),
       {1.0, 2 * (1 / e1 - 1), 2 * (std::exp(-0.5) - 1)}},
      {"Relu", {2}, {1.5, -1.0}, unary(Op::kRelu), {1.5, 0}},
      {"LeakyRelu", {2}, {1.5, -1.0}, unary(Op::kLeakyRelu, 0.25f), {1.5, -0.25}},
      {"Tanh", {2}, {0.5, -3.0}, unary(Op::kTanh), {0.46211715726000975, -0.9950547536867305}},
      {"Sigmoid", {2}, {0.0, -800.0}, unary(Op::kSigmoid), {0.5, 0}},
      {"Softplus", {3}, {0.0, 900.0, -900.0}, unary(Op::kSoftplus), {std::log(2.0), 900, 0}},
      {"Sqrt", {1}, {6.25}, unary(Op::kSqrt), {2.5}},
      {"Neg", {1}, {6.25}, unary(Op::kNeg), {-6.25}},
      {"Abs", {2}, {6.25, -2}, unary(Op::kAbs), {6.25, 2}},
      {"Exp", {1}, {1.0}, unary(Op::kExp), {e1}},
      {"Log", {1}, {e1}, unary(Op::kLog), {1.0}},
      {"Reciprocal", {1}, {-4}, unary(Op::kReciprocal), {-0.25}},
      {"Erf", {1}, {0.5}, unary(Op::kErf), {0.5204998778130465}},
      {"Clip", {3}, {-3, 0.5, 3}, unary(Op::kClip, -1.0f, 2.0f), {-1, 0.5, 2}},
  };
}

std::vector<Case> BinaryCases() {
  const auto with = [](Op op, const Shape& shape, const std::vector<float>& c) {
    return [=](GraphBuilder* b, ValueId x) {
      return b->AddBinary(op, "n", x, b->AddConstant("c", shape, c));
    };
  };
  return {
      {"Add, row", {2, 2}, {1, 2, 3, 4}, with(Op::kAdd, {2}, {10, 20}), {11, 22, 13, 24}},
      {"Sub, column", {2, 2}, {1, 2, 3, 4}, with(Op::kSub, {2, 1}, {10, 20}), {-9, -8, -17, -16}},
      {"Mul, stretched input",
       {2, 1},
       {3, 4},
       with(Op::kMul, {1, 3}, {1, 2, 3}),
       {3, 6, 9, 4, 8, 12}},
      {"Div, scalar", {2}, {1, 2}, with(Op::kDiv, {}, {4}), {0.25, 0.5}},
      {"Pow of a negative base", {2}, {-3, 2}, with(Op::kPow, {}, {2}), {9, 4}},
      {"Min", {2}, {-3, 2}, with(Op::kMin, {}, {1}), {-3, 1}},
      {"Max", {2}, {-3, 2}, with(Op::kMax, {}, {1}), {1, 2}},
      {"x / x²",
       {2},
       {2, 4},
       [](GraphBuilder* b, ValueId x) {
         return b->AddBinary(Op::kDiv, "n", x, b->AddBinary(Op::kMul, "m", x, x));
       },
       {0.5, 0.25}},
      {"xˣ",
       {1},
       {2},
       [](GraphBuilder* b, ValueId x) { return b->AddBinary(Op::kPow, "n", x, x); },
       {4}},
  };
}

std::vector<Case> ProductCases() {
  return {
      {"MatMul, row times matrix",
       {1, 2},
       {1, 2},
       [](GraphBuilder* b, ValueId x) {
         return b->AddMatMul("n", x, b->AddConstant("c", {2, 3}, {1, 2, 3, 4, 5, 6}));
       },
       {9, 12, 15}},
      {"MatMul, vectors",
       {2},
       {1, 2},
       [](GraphBuilder* b, ValueId x) {
         return b->AddMatMul("n", b->AddConstant("c", {3, 2}, {1, 2, 3, 4, 5, 6}), x);
       },
       {5, 11, 17}},
      {"MatMul, batches",
       {2, 1, 2},
       {1, 2, 3, 4},
       [](GraphBuilder* b, ValueId x) {
         return b->AddMatMul("n", x, b->AddConstant("c", {2, 1}, {10, 1}));
       },
       {12, 34}},
      {"MatMul of x with itself",
       {2, 2},
       {1, 2, 3, 4},
       [](GraphBuilder* b, ValueId x) { return b->AddMatMul("n", x, x); },
       {7, 10, 15, 22}},
      {"Gemm",
       {1, 2},
       {1, 2},
       [](GraphBuilder* b, ValueId x) {
         return b->AddGemm("n",
                           x,
                           b->AddConstant("w", {3, 2}, {1, 2, 3, 4, 5, 6}),
                           b->AddConstant("c", {3}, {1, 1, 2}),
                           2,
                           10,
                           false,
                           true);
       },
       {2 * 5 + 10, 2 * 11 + 10, 2 * 17 + 20}},
      {"Gemm, both transposed, x on the right and added",
       {2, 2},
       {1, 2, 3, 4},
       [](GraphBuilder* b, ValueId x) {
         return b->AddGemm("n", b->AddConstant("a", {2, 2}, {1, 0, 2, 1}), x, x, 1, 1, true, true);
       },
       // [1 2; 0 1] [1 3; 2 4] + x
       {5 + 1, 11 + 2, 2 + 3, 4 + 4}},
  };
}

std::vector<Case> ShapeCases() {
  return {
      {"Concat",
       {2, 1},
       {1, 2},
       [](GraphBuilder* b, ValueId x) {
         return b->AddConcat("n", {x, b->AddConstant("c", {2, 2}, {5, 6, 7, 8}), x}, 1);
       },
       {1, 5, 6, 1, 2, 7, 8, 2}},
      {"Slice backwards",
       {2, 3},
       {1, 2, 3, 4, 5, 6},
       [](GraphBuilder* b, ValueId x) {
         return b->AddSlice("n", x, {0, 2}, {1, -2}, {2, 2});
       },
       {3, 1, 6, 4}},
      {"Gather",
       {2, 3},
       {1, 2, 3, 4, 5, 6},
       [](GraphBuilder* b, ValueId x) {
         return b->AddGather("n", x, 1, {2, 2, 0}, {3});
       },
       {3, 3, 1, 6, 6, 4}},
      {"Transpose",
       {2, 3},
       {1, 2, 3, 4, 5, 6},
       [](GraphBuilder* b, ValueId x) {
         return b->AddTranspose("n", x, {1, 0});
       },
       {1, 4, 2, 5, 3, 6}},
      {"Reshape",
       {2, 3},
       {1, 2, 3, 4, 5, 6},
       [](GraphBuilder* b, ValueId x) {
         return b->AddReshape("n", x, {3, 2});
       },
       {1, 2, 3, 4, 5, 6}},
      {"Expand",
       {1, 2},
       {1, 2},
       [](GraphBuilder* b, ValueId x) {
         return b->AddExpand("n", x, {2, 1});
       },
       {1, 2, 1, 2}},
  };
}

std::vector<Case> ReductionCases() {
  return {
      {"Softmax, large numbers",
       {1, 2},
       {1000, 1000 + std::log(3.0)},
       [](GraphBuilder* b, ValueId x) { return b->AddSoftmax("n", x, {1}); },
       {0.25, 0.75}},
      {"Softmax, middle axis",
       {1, 2, 2},
       {0, 1, std::log(3.0), 1},
       [](GraphBuilder* b, ValueId x) { return b->AddSoftmax("n", x, {1}); },
       {0.25, 0.5, 0.75, 0.5}},
      {"ReduceMean",
       {2, 2},
       {1, 2, 3, 4},
       [](GraphBuilder* b, ValueId x) { return b->AddReduce(Op::kReduceMean, "n", x, {0}, false); },
       {2, 3}},
      {"ReduceSum of all",
       {2, 2},
       {1, 2, 3, 4},
       [](GraphBuilder* b, ValueId x) {
         return b->AddReduce(Op::kReduceSum, "n", x, {0, 1}, true);
       },
       {10}},
      {"LayerNormalization",
       {1, 2},
       {1, 3},
       [](GraphBuilder* b, ValueId x) {
         return b->AddLayerNorm(
             "n", x, b->AddConstant("s", {2}, {2, 3}), b->AddConstant("b", {2}, {10, 20}), 1, 3.0f);
       },
       // mean 2, variance 1, √(1 + 3) = 2
       {10 - 1, 20 + 1.5}},
      {"LayerNormalization scaled by its input",
       {1, 2},
       {1, 3},
       [](GraphBuilder* b, ValueId x) {
         return b->AddLayerNorm(
             "n", x, b->AddReshape("r", x, {2}), b->AddReshape("r", x, {2}), 1, 3.0f);
       },
       {-0.5 + 1, 1.5 + 3}},
  };
}

std::vector<Case> Cases() {
  std::vector<Case> all;
  for (const auto& family :
       {UnaryCases(), BinaryCases(), ProductCases(), ShapeCases(), ReductionCases()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

TEST(Graph, EveryOperationGivesTheNumbersWorkedByHand) {
  for (const Case& c : Cases()) {
    GraphBuilder builder;
    builder.AddOutput("y", c.build(&builder, builder.AddInput("x", c.shape)));
    GraphEvaluator<double> evaluator(std::make_shared<const Graph>(builder.Finish()));
    std::copy(c.x.begin(), c.x.end(), evaluator.input(0).begin());
    evaluator.Evaluate();
    ASSERT_EQ(evaluator.output(0).size(), c.y.size()) << c.name;
    // constants are float32 where they are not whole numbers
    for (std::size_t i = 0; i < c.y.size(); ++i)
      EXPECT_NEAR(evaluator.output(0)[i], c.y[i], 1e-7) << c.name << " " << i;
  }
}

TEST(Graph, TangentsOfEveryOperationAreItsCentralDifferences) {
  for (const Case& c : Cases()) {
    GraphBuilder builder;
    builder.AddOutput("y", c.build(&builder, builder.AddInput("x", c.shape)));
    GraphEvaluator<double> evaluator(std::make_shared<const Graph>(builder.Finish()));
    std::copy(c.x.begin(), c.x.end(), evaluator.input(0).begin());
    evaluator.Evaluate();
    // h = 1e-5: truncation h² ~ 1e-10 of the third derivative, rounding 1e-16 · |y| / h
    const std::vector<double> differences = DifferenceJacobian(&evaluator, 0, 0, 1e-5);
    const std::vector<double> exact = GraphJacobian(&evaluator, 0, 0, 2);
    ASSERT_EQ(exact.size(), differences.size());
    for (std::size_t i = 0; i < exact.size(); ++i) {
      EXPECT_NEAR(exact[i], differences[i], 1e-7 * (1 + std::abs(differences[i])))
          << c.name << " " << i;
    }
  }
}

TEST(Graph, ConstantsAreFoldedToTheSameNumbers) {
  // the same operation on a constant leaves no node behind
  for (const Case& c : Cases()) {
    GraphBuilder builder;
    const ValueId x = builder.AddConstant("x", c.shape, std::vector<float>(c.x.begin(), c.x.end()));
    const ValueId y = c.build(&builder, x);
    ASSERT_TRUE(builder.is_constant(y)) << c.name;
    // the operand itself is rounded to float32: 1000 + ln 3 by 3e-5
    for (std::size_t i = 0; i < c.y.size(); ++i) {
      EXPECT_NEAR(builder.data(y)[i], c.y[i], 5e-5 * (1 + std::abs(c.y[i]))) << c.name << " " << i;
    }
    builder.AddInput("unused", {1});
    builder.AddOutput("y", y);
    EXPECT_TRUE(builder.Finish().nodes().empty()) << c.name;
  }
}

TEST(Graph, ChainsOfRandomLayersHaveExactTangentsInSeveralInputsAndOutputs) {
  Rng rng(3);
  for (int trial = 0; trial < 10; ++trial) {
    GraphBuilder b;
    const ValueId x = b.AddInput("x", {1, 6}), u = b.AddInput("u", {1, 4});
    ValueId h = b.AddConcat("c", {x, u}, 1);
    h = b.AddUnary(Op::kTanh,
                   "t",
                   b.AddMatMul("m", h, b.AddConstant("w", {10, 8}, RandomFloats(&rng, 80, 0.4))));
    const ValueId gate = b.AddUnary(Op::kSigmoid, "s", b.AddSlice("l", h, {0, 0}, {1, 2}, {1, 4}));
    const ValueId mixed = b.AddBinary(Op::kMul, "g", gate, u);
    const ValueId norm =
        b.AddLayerNorm("n", h, b.AddConstant("one", {8}, RandomFloats(&rng, 8)), -1, 1, 1e-5f);
    b.AddOutput("a", b.AddSoftmax("sm", mixed, {1}));
    b.AddOutput("b",
                b.AddBinary(Op::kSub, "d", norm, b.AddReduce(Op::kReduceMean, "r", x, {1}, true)));
    GraphEvaluator<double> evaluator(std::make_shared<const Graph>(b.Finish()));
    for (int i = 0; i < 2; ++i) {
      for (double& v : evaluator.input(i)) v = rng.Normal();
    }
    evaluator.Evaluate();
    for (int output = 0; output < 2; ++output) {
      for (int input = 0; input < 2; ++input) {
        const std::vector<double> differences = DifferenceJacobian(&evaluator, output, input, 1e-5);
        const std::vector<double> exact = GraphJacobian(&evaluator, output, input, 3);
        for (std::size_t i = 0; i < exact.size(); ++i) {
          EXPECT_NEAR(exact[i], differences[i], 1e-7 * (1 + std::abs(differences[i])));
        }
      }
    }
  }
}

TEST(Graph, FloatFollowsDouble) {
  Rng rng(4);
  const auto graph =
      std::make_shared<const Graph>(MlpGraph(RandomTwoActors(&rng, 30, 5, 4), "x", "y"));
  GraphEvaluator<float> single(graph);
  GraphEvaluator<double> twice(graph);
  for (std::size_t i = 0; i < 30; ++i) {
    single.input(0)[i] = static_cast<float>(rng.Normal());
    twice.input(0)[i] = single.input(0)[i];
  }
  single.Evaluate();
  twice.Evaluate();
  // 40-term sums in float32
  for (std::size_t i = 0; i < 9; ++i) EXPECT_NEAR(single.output(0)[i], twice.output(0)[i], 1e-5);
  const auto J = GraphJacobian(&single, 0, 0);
  const auto J2 = GraphJacobian(&twice, 0, 0);
  for (std::size_t i = 0; i < J.size(); ++i) EXPECT_NEAR(J[i], J2[i], 1e-5);
}

TEST(Graph, AConstantOutputHasZeroTangents) {
  GraphBuilder b;
  b.AddInput("x", {2});
  b.AddOutput("y", b.AddConstant("c", {2}, {1, 2}));
  GraphEvaluator<double> evaluator(std::make_shared<const Graph>(b.Finish()));
  evaluator.Evaluate();
  EXPECT_EQ(evaluator.output(0)[1], 2);
  for (const double d : GraphJacobian(&evaluator, 0, 0)) EXPECT_EQ(d, 0);
}

TEST(Graph, NodesNoOutputNeedsAreDropped) {
  GraphBuilder b;
  const ValueId x = b.AddInput("x", {2});
  b.AddUnary(Op::kExp, "dead", x);
  b.AddOutput("y", b.AddUnary(Op::kTanh, "live", x));
  const Graph graph = b.Finish();
  ASSERT_EQ(graph.nodes().size(), 1u);
  EXPECT_EQ(graph.nodes()[0].name, "live");
  EXPECT_EQ(graph.values().size(), 2u);
}

std::string ErrorOf(const std::function<void(GraphBuilder*)>& build, GraphLimits limits = {}) {
  GraphBuilder builder(limits);
  try {
    build(&builder);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Graph, ShapesThatDoNotFitNameTheNode) {
  EXPECT_EQ(ErrorOf([](GraphBuilder* b) {
              b->AddBinary(Op::kAdd, "/Add_1", b->AddInput("x", {1, 3}), b->AddInput("z", {2}));
            }),
            "node '/Add_1': shapes [1, 3] and [2] do not broadcast");
  EXPECT_EQ(ErrorOf([](GraphBuilder* b) {
              b->AddMatMul("/M", b->AddInput("x", {1, 3}), b->AddInput("z", {2, 3}));
            }),
            "node '/M': shapes [1, 3] and [2, 3] cannot be multiplied");
  EXPECT_EQ(ErrorOf([](GraphBuilder* b) {
              b->AddReshape("/R", b->AddInput("x", {1, 3}), {2, 2});
            }),
            "node '/R': cannot reshape [1, 3] to [2, 2]");
}

TEST(Graph, LimitsHoldBeforeAnythingIsAllocated) {
  GraphLimits limits;
  limits.max_elements = 1000;
  limits.max_total_elements = 3000;
  limits.max_work = 5000;
  limits.max_nodes = 3;
  EXPECT_NE(ErrorOf([](GraphBuilder* b) {
              b->AddInput("x", {std::int64_t{1} << 40, std::int64_t{1} << 40});
            }).find("is larger than"),
            std::string::npos);
  EXPECT_NE(ErrorOf(
                [](GraphBuilder* b) {
                  const ValueId x = b->AddInput("x", {900, 1});
                  b->AddMatMul("outer", x, b->AddInput("z", {1, 900}));
                },
                limits)
                .find("larger than 1000 elements"),
            std::string::npos);
  EXPECT_NE(ErrorOf(
                [](GraphBuilder* b) {
                  for (int i = 0; i < 4; ++i) b->AddInput("x", {900});
                },
                limits)
                .find("together are larger"),
            std::string::npos);
  EXPECT_NE(ErrorOf(
                [](GraphBuilder* b) {
                  b->AddMatMul("m", b->AddInput("x", {30, 30}), b->AddInput("z", {30, 30}));
                },
                limits)
                .find("multiply-adds"),
            std::string::npos);
  EXPECT_NE(ErrorOf(
                [](GraphBuilder* b) {
                  ValueId x = b->AddInput("x", {1});
                  for (int i = 0; i < 4; ++i) x = b->AddUnary(Op::kNeg, "n", x);
                },
                limits)
                .find("more than 3 nodes"),
            std::string::npos);
}

}  // namespace
}  // namespace silc
