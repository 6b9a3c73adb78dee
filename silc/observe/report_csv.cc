// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/report_csv.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace silc {

std::string CsvHeader(const std::vector<std::string>& joints) {
  std::string out =
      "time_s,contact,left_foot_N,right_foot_N,base_x_m,base_y_m,base_z_m,saturation,static_status,"
      "loop_radius,"
      "sigma_static,worst_static,sigma_one_step";
  const auto write = [&out](fmt::string_view format, auto... args) {
    fmt::vformat_to(std::back_inserter(out), format, fmt::make_format_args(args...));
  };
  for (const char* point : {"com",
                            "left_hand_in_world",
                            "right_hand_in_world",
                            "left_hand_on_base",
                            "right_hand_on_base"}) {
    for (const char* axis : {"x", "y", "z"}) write(",{}_{}_N_per_m", point, axis);
  }
  for (const std::string& joint : joints) write(",K1_{}_Nm_per_rad", joint);
  for (const std::string& joint : joints) write(",Ks_{}_Nm_per_rad", joint);
  return out + "\n";
}

std::string CsvRow(const Moment& moment) {
  std::string out;
  const auto write = [&out](fmt::string_view format, auto... args) {
    fmt::vformat_to(std::back_inserter(out), format, fmt::make_format_args(args...));
  };
  // an empty cell is a missing number to every reader
  const auto number = [&](double value) {
    if (std::isfinite(value)) {
      write(",{:.7g}", value);
    } else {
      out += ",";
    }
  };
  const MomentReading& reading = moment.reading;
  write("{:.6g},{}", moment.time, Name(moment.mode));
  number(moment.foot_force[0]);
  number(moment.foot_force[1]);
  for (int axis = 0; axis < 3; ++axis) number(moment.p_WB[axis]);
  number(moment.saturation);
  write(",{}", reading.static_status == StiffnessStatus::kOk ? "ok" : "missing");
  number(reading.loop.rho);
  number(reading.quasi_static.sigma);
  number(reading.quasi_static.worst);
  number(reading.one_step.sigma);
  for (const PointReading* point : {&reading.com,
                                    &reading.hand_in_world[0],
                                    &reading.hand_in_world[1],
                                    &reading.hand_on_base[0],
                                    &reading.hand_on_base[1]}) {
    for (int axis = 0; axis < 3; ++axis) number(point->one_axis[axis]);
  }
  for (const double k : reading.K_1_diag) number(k);
  for (const double k : reading.K_s_diag) number(k);
  return out + "\n";
}

std::string ObservationCsv(const ObservationRun& run) {
  std::string out = CsvHeader(run.joints);
  for (const Moment& moment : run.moments) out += CsvRow(moment);
  return out;
}

}  // namespace silc
