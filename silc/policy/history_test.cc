// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/history.h"

#include <gtest/gtest.h>

#include <vector>

#include "silc/policy/observation_layout.h"

namespace silc {
namespace {

// Two constant terms, "p" of width 2 and "r" of width 1.
ObservationLayout Layout() {
  ObservationLayout layout;
  layout.history = 3;
  layout.terms.resize(2);
  layout.terms[0].name = "p";
  layout.terms[0].constant = {0, 0};
  layout.terms[1].name = "r";
  layout.terms[1].constant = {0};
  return layout;
}

// Frame number n is (n1, n2, n3): 11, 12, 13 for the first.
Eigen::VectorXd Frame(int n) { return Eigen::Vector3d(10 * n + 1, 10 * n + 2, 10 * n + 3); }

std::vector<double> Flat(const History& history) {
  std::vector<double> flat;
  for (const History::Slot& slot : history.slots()) flat.push_back(history.Value(slot));
  return flat;
}

History Empty(const ObservationLayout& layout) {
  return History(CompileObservation(layout, {}, "test"));
}

std::vector<double> After(const ObservationLayout& layout, int pushes) {
  History history = Empty(layout);
  for (int n = 1; n <= pushes; ++n) history.Push(Frame(n), std::vector<char>(3, 0));
  return Flat(history);
}

using Flats = std::vector<double>;

TEST(History, FrameMajorOldestFirstStartsWithZeros) {
  const ObservationLayout layout = Layout();
  EXPECT_EQ(After(layout, 1), (Flats{0, 0, 0, 0, 0, 0, 11, 12, 13}));
  EXPECT_EQ(After(layout, 2), (Flats{0, 0, 0, 11, 12, 13, 21, 22, 23}));
  EXPECT_EQ(After(layout, 5), (Flats{31, 32, 33, 41, 42, 43, 51, 52, 53}));
}

TEST(History, NewestFirst) {
  ObservationLayout layout = Layout();
  layout.newest_first = true;
  EXPECT_EQ(After(layout, 4), (Flats{41, 42, 43, 31, 32, 33, 21, 22, 23}));
}

TEST(History, TermMajor) {
  ObservationLayout layout = Layout();
  layout.order = FrameOrder::kTermMajor;
  EXPECT_EQ(After(layout, 3), (Flats{11, 12, 21, 22, 31, 32, 13, 23, 33}));
}

TEST(History, EachTermKeepsItsOwnHistory) {
  ObservationLayout layout = Layout();
  layout.order = FrameOrder::kTermMajor;
  layout.terms[0].history = 1;
  layout.terms[1].history = 4;
  EXPECT_EQ(After(layout, 5), (Flats{51, 52, 23, 33, 43, 53}));
  layout.newest_first = true;
  EXPECT_EQ(After(layout, 5), (Flats{51, 52, 53, 43, 33, 23}));
}

TEST(History, FirstFrameFillsTheHistoryWhenTheLayoutSaysSo) {
  ObservationLayout layout = Layout();
  layout.reset = HistoryReset::kFirstFrame;
  EXPECT_EQ(After(layout, 1), (Flats{11, 12, 13, 11, 12, 13, 11, 12, 13}));
  EXPECT_EQ(After(layout, 2), (Flats{11, 12, 13, 11, 12, 13, 21, 22, 23}));
}

TEST(History, ResetForgetsEverything) {
  History history = Empty(Layout());
  for (int n = 1; n <= 7; ++n) history.Push(Frame(n), std::vector<char>(3, 1));
  history.Reset();
  EXPECT_FALSE(history.any_clipped());
  history.Push(Frame(1), std::vector<char>(3, 0));
  EXPECT_EQ(Flat(history), After(Layout(), 1));
}

TEST(History, AClippedElementIsKnownUntilItsFrameLeaves) {
  History history = Empty(Layout());
  history.Push(Frame(1), {0, 1, 0});
  history.Push(Frame(2), {0, 0, 0});
  EXPECT_TRUE(history.Clipped({1, 1}));
  EXPECT_FALSE(history.Clipped({1, 0}));
  EXPECT_FALSE(history.Clipped({0, 1}));
  EXPECT_TRUE(history.any_clipped());
  history.Push(Frame(3), {0, 0, 0});
  history.Push(Frame(4), {0, 0, 0});
  EXPECT_FALSE(history.any_clipped());
}

}  // namespace
}  // namespace silc
