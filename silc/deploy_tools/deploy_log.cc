// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy_tools/deploy_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>
#include <vector>

#include "silc/base/error.h"
#include "silc/base/nan.h"
#include "silc/npz/npz.h"

namespace silc {

// Rows that have come together, column by column.
struct DeployLog::Columns {
  struct Column {
    std::int64_t width;
    bool single_precision;
    std::vector<double> values;
  };
  std::map<std::string, Column> columns;
  double first_s = 0, last_s = 0;  // [s] of the ticks
  bool any = false;

  template <typename Range>
  void Append(const std::string& name, const Range& values, bool single_precision) {
    Column& column = columns[name];
    column.width = static_cast<std::int64_t>(std::size(values));
    column.single_precision = single_precision;
    column.values.insert(column.values.end(), std::begin(values), std::end(values));
  }
  void Append(const std::string& name, double value) {
    Column& column = columns[name];
    column.width = 0;
    column.single_precision = false;
    column.values.push_back(value);
  }
};

namespace {

// false where it cannot be looked into
bool IsEmptyFolder(const std::string& folder) {
  std::error_code error;
  const bool empty = std::filesystem::is_empty(folder, error);
  return !error && empty;
}

// Brings the names in a folder to the disk. False, with errno, where the disk fails or the folder
// may not be read; file systems that have nothing to do for that are content.
bool SyncFolder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool synced = ::fsync(descriptor) == 0 || errno == EINVAL || errno == EROFS;
  const int reason = errno;
  ::close(descriptor);
  errno = reason;
  return synced;
}

// The folder, or the nearest above it, that is there.
std::filesystem::path FirstThere(const std::string& folder) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(folder, error).lexically_normal();
  while (path.has_relative_path() && !std::filesystem::exists(path, error)) {
    path = path.parent_path();
  }
  return path;
}

// Folders that were made below `first_there` are found after a power cut. One above that may not
// be read is no reason to do without a log.
void FlushName(const std::string& folder, const std::filesystem::path& first_there) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(folder, error).lexically_normal();
  while (path != first_there && path.has_relative_path()) {
    path = path.parent_path();
    if (!SyncFolder(path.string()) && errno != EACCES) {
      throw RunError("--log " + folder + ": its name cannot be flushed: " + std::strerror(errno));
    }
  }
}

}  // namespace

DeployLog::DeployLog(std::string folder, double chunk_seconds)
    : folder_(std::move(folder)),
      chunk_seconds_(chunk_seconds),
      columns_(std::make_unique<Columns>()) {
  std::error_code error;
  const bool there = std::filesystem::exists(folder_, error);
  const bool usable =
      !there || (std::filesystem::is_directory(folder_, error) && IsEmptyFolder(folder_));
  if (!usable) throw ConfigError("--log " + folder_ + ": is there already; name a new folder");
  const std::filesystem::path first_there = FirstThere(folder_);
  std::filesystem::create_directories(folder_, error);
  if (error) throw RunError("--log " + folder_ + ": cannot be made: " + error.message());
  made_ = !there;
  // names are flushed by reading the folder they are in
  if (access(folder_.c_str(), R_OK | W_OK | X_OK) != 0) {
    throw RunError("--log " + folder_ + ": cannot be written to: " + std::strerror(errno));
  }
  FlushName(folder_, first_there);
}

DeployLog::~DeployLog() {
  std::error_code ignored;
  if (made_ && chunks_ == 0) std::filesystem::remove(folder_, ignored);  // leaves one that is used
}

void DeployLog::Add(const TickRecord& record) {
  Columns& c = *columns_;
  const double now = 1e-9 * static_cast<double>(record.time_ns);
  if (!c.any) c.first_s = now;
  c.any = true;
  c.last_s = now;
  c.Append("tick_time", now);
  c.Append("tick_gap", record.gap);
  c.Append("tick_work", record.work);
  c.Append("tick_state", static_cast<double>(record.state));
  c.Append("tick_latched", static_cast<double>(record.latched));
  c.Append("tick_sent", record.sent ? 1 : 0);
  c.Append("tick_fresh", record.fresh ? 1 : 0);
  c.Append("tick_robot_tick", record.robot.tick);
  const double modes[] = {static_cast<double>(record.robot.mode_pr),
                          static_cast<double>(record.robot.mode_machine)};
  c.Append("tick_mode", modes, true);
  c.Append("tick_remote", record.robot.remote, true);
  JointArray q, qd, tau, casing, winding, mode, fault_word, cq, ckp, ckd;
  for (int j = 0; j < kRobotMotors; ++j) {
    const auto i = static_cast<std::size_t>(j);
    const MotorReading& motor = record.robot.motor[j];
    q[i] = motor.q;
    qd[i] = motor.dq;
    tau[i] = motor.tau_est;
    casing[i] = motor.temperature_C[0];
    winding[i] = motor.temperature_C[1];
    mode[i] = motor.mode;
    fault_word[i] = motor.fault_word;
    cq[i] = record.command.motor[j].q;
    ckp[i] = record.command.motor[j].kp;
    ckd[i] = record.command.motor[j].kd;
  }
  c.Append("tick_q", q, true);
  c.Append("tick_qd", qd, true);
  c.Append("tick_tau", tau, true);
  c.Append("tick_casing_C", casing, true);
  c.Append("tick_winding_C", winding, true);
  c.Append("tick_motor_mode", mode, true);
  c.Append("tick_fault_word", fault_word, false);  // 32 bits: a float would round them
  c.Append("tick_quat_wxyz", record.robot.imu.quat_wxyz, true);
  c.Append("tick_gyro", record.robot.imu.gyro, true);
  c.Append("tick_accel", record.robot.imu.accel, true);
  c.Append("tick_command_q", cq, true);
  c.Append("tick_command_kp", ckp, true);
  c.Append("tick_command_kd", ckd, true);
  if (c.last_s - c.first_s < chunk_seconds_) return;
  AppendRows(now - kPatience);
  WriteChunk();
}

void DeployLog::Add(const PolicyStep& step) { rows_.push_back({step, {}, false}); }

void DeployLog::Add(const DeployMoment& moment) {
  for (Row& row : rows_) {
    if (row.step.sequence != moment.sequence) continue;
    row.moment = moment;
    row.seen = true;
    return;
  }
}

// Control steps in their order, up to the first that is still waited for.
void DeployLog::AppendRows(double before_s) {
  // the observer goes in order: what it passed over it will not see
  std::size_t passed = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].seen) passed = i + 1;
  }
  for (; !rows_.empty(); rows_.pop_front()) {
    const bool waits = passed == 0 && 1e-9 * double(rows_.front().step.time_ns) >= before_s;
    if (waits) return;
    AppendRow(rows_.front());
    if (passed > 0) --passed;
  }
}

void DeployLog::AppendRow(const Row& row) {
  const PolicyStep& s = row.step;
  Columns& c = *columns_;
  c.Append("time", 1e-9 * static_cast<double>(s.time_ns));
  c.Append("sequence", static_cast<double>(s.sequence));
  c.Append("session", s.session);
  c.Append("qpos", s.qpos, false);
  c.Append("qvel", s.qvel, false);
  c.Append("tau", s.input.tau, false);
  c.Append("gravity_B", s.input.g_B, false);
  const double command[5] = {s.input.command.lin_vel.x(),
                             s.input.command.lin_vel.y(),
                             s.input.command.yaw_rate,
                             s.input.command.height,
                             s.input.command.walk};
  c.Append("command", command, false);
  c.Append("observation", s.observation, true);
  c.Append("action", s.action, false);
  c.Append("target", s.target, false);

  const DeployMoment& m = row.moment;
  c.Append("contact_mode", row.seen ? static_cast<double>(m.mode) : kNan);
  c.Append("foot_force", row.seen ? m.foot_force : std::array<double, 2>{kNan, kNan}, false);
  c.Append("sigma", row.seen ? m.sigma : kNan);
  c.Append("rho", row.seen ? m.rho : kNan);
  c.Append("K_s_diag",
           row.seen ? m.K_s_diag : Eigen::VectorXd::Constant(s.action.size(), kNan).eval(),
           false);
  c.Append("observe_s", row.seen ? m.observe_s : kNan);
}

void DeployLog::WriteChunk() {
  const std::unique_ptr<Columns> columns = std::move(columns_);
  columns_ = std::make_unique<Columns>();
  std::vector<NpzEntry> entries;
  for (const auto& [name, column] : columns->columns) {
    const auto size = static_cast<std::int64_t>(column.values.size());
    const NpyShape shape =
        column.width == 0 ? NpyShape{size} : NpyShape{size / column.width, column.width};
    entries.push_back({name, shape, column.values, column.single_precision});
  }
  char name[32];
  std::snprintf(name, sizeof name, "chunk_%06d.npz", chunks_++);
  const std::string chunk = (std::filesystem::path(folder_) / name).string();
  WriteNpz(chunk, entries);
  // its bytes are on the disk; its name has to be, too, or a power cut leaves no such file
  if (!SyncFolder(folder_)) {
    throw RunError(chunk + ": its name cannot be flushed: " + std::strerror(errno));
  }
}

void DeployLog::Finish() {
  AppendRows(HUGE_VAL);
  if (!columns_->columns.empty()) WriteChunk();
}

}  // namespace silc
