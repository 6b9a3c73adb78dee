// SPDX-License-Identifier: Apache-2.0
#include "silc/eval/metric_table.h"

#include <gtest/gtest.h>

#include "silc/eval/experiment_metrics.h"

namespace silc {
namespace {

struct TwoMetrics : MetricTable {
  TwoMetrics() : MetricTable("two") {}
  MetricHandle height = Declare("height", "height of the base", "m", Better::kHigher);
  AxisMetrics force = DeclareAxes("force", "force", "N", Better::kNeither);
  // the same name a second time
  void DeclareAgain() { Declare("height", "something else", "s", Better::kLower); }
};

TEST(MetricTable, HasWhatItsMembersDeclareInTheirOrder) {
  const TwoMetrics table;
  EXPECT_EQ(table.Names(),
            (std::vector<std::string>{"survival", "height", "force_x", "force_y", "force_z"}));
  EXPECT_EQ(table.Find("height"), table.height);
  EXPECT_EQ(table.Find("force_y"), table.force[1]);
  EXPECT_EQ(table.force.y->label, "force, y");
  EXPECT_EQ(table.height->experiment, "two");
  EXPECT_EQ(LabelWithUnit(table.height), "height of the base [m]");
  EXPECT_FALSE(table.Find("heigth"));
  EXPECT_EQ(table.All().size(), 5u);
  EXPECT_EQ(table.All()[1], table.height);
}

TEST(MetricTableDeathTest, ANameIsDeclaredOnce) {
  TwoMetrics table;
  EXPECT_DEATH(table.DeclareAgain(), "Find");
}

// Two experiments may have metrics of one name; they are different metrics.
TEST(MetricTable, HandlesTellExperimentsApart) {
  EXPECT_EQ(metric::Walk().arm_error->name, metric::Stand().arm_error->name);
  EXPECT_NE(metric::Walk().arm_error, metric::Stand().arm_error);
}

TEST(MetricTable, FamiliesNameTheirMembers) {
  EXPECT_EQ(metric::HandLoad().on_base_over_spec.z->name, "on_base_over_spec_z");
  EXPECT_EQ(metric::Walk().lower.power->name, "power_lower");
  EXPECT_EQ(metric::Budget().flight.quantiles.disc_p99->name, "disc_p99_flight");
  EXPECT_EQ(metric::Frequency().hand_in_world_z.at_0_5hz.stiffness->name,
            "hand_in_world_z_stiffness_0.5hz");
  EXPECT_EQ(metric::Frequency().com_x.at_10hz.damping->label, "centre of mass, x: Im/ω at 10 Hz");
}

}  // namespace
}  // namespace silc
