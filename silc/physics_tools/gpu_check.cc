// SPDX-License-Identifier: Apache-2.0
// CUDA against the CPU on the same robots, and steps per second. Exit 0 equal, 1 not, 77 no GPU.
//   gpu_check [--no-bench] [--robots N] [--spin N]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "silc/physics/cuda_batch.h"
#include "silc/physics/device_array.h"
#include "silc/physics/test_crowd.h"
#include "silc/physics/test_models.h"

namespace silc {
namespace {

using physics_test::All;
using physics_test::Crowd;
using physics_test::DataPtr;
using physics_test::Equip;
using physics_test::G1;
using physics_test::MakeCrowd;
using physics_test::ModelPtr;
using physics_test::Range;

BatchModelOptions Outputs() { return physics_test::G1Outputs({"pelvis"}); }

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Per robot: largest difference over the robot's largest value (at least `floor`). True when the
/// median and the 99th percentile are within bounds.
bool Compare(const char* what,
             PhysicsBatch* a,
             PhysicsBatch* b,
             Field field,
             double floor,
             double median,
             double p99) {
  const std::vector<float> x = All(a, field), y = All(b, field);
  const int w = a->width(field);
  std::vector<double> errors;
  for (int env = 0; env < a->num_envs(); ++env) {
    double worst = 0, largest = floor;
    for (int i = 0; i < w; ++i) {
      const std::size_t k = static_cast<std::size_t>(env) * w + i;
      worst = std::max<double>(worst, std::abs(x[k] - y[k]));
      largest = std::max<double>(largest, std::abs(y[k]));
      if (!std::isfinite(x[k])) worst = std::numeric_limits<double>::infinity();
    }
    errors.push_back(worst / largest);
  }
  std::sort(errors.begin(), errors.end());
  const double at_median = errors[errors.size() / 2], at_p99 = errors[errors.size() * 99 / 100];
  const bool ok = at_median < median && at_p99 < p99;
  std::printf(
      "{\"name\":\"physics.cuda_error\",\"what\":\"%s\",\"median\":%.2e,\"p99\":%.2e,\"max\":%.2e,"
      "\"robots\":%d,\"ok\":%s}\n",
      what,
      at_median,
      at_p99,
      errors.back(),
      a->num_envs(),
      ok ? "true" : "false");
  return ok;
}

/// One step from random states against the CPU.
bool CheckStep(const mjModel& m, mjData* d, int robots) {
  const BatchModel model = CompileBatchModel(m, Outputs());
  CpuBatch cpu(model, robots);
  CudaBatch cuda(model, robots);
  const Crowd crowd = MakeCrowd(m, d, physics_test::kStateKinds, robots);
  Equip(&cpu, crowd);
  Equip(&cuda, crowd);
  cpu.Advance(1);
  cuda.Advance(1);
  cpu.UpdateKinematics();
  cuda.UpdateKinematics();
  // both are single precision with sums in another order: each is within 1e-5 of MuJoCo
  bool ok = Compare("qacc", &cuda, &cpu, Field::kQacc, 1, 1e-5, 2e-4);
  ok &= Compare("qpos", &cuda, &cpu, Field::kQpos, 1, 1e-6, 1e-5);
  ok &= Compare("torque", &cuda, &cpu, Field::kTorque, 1, 1e-5, 1e-4);
  ok &= Compare("foot_force", &cuda, &cpu, Field::kFootForce, 300, 1e-4, 5e-3);
  ok &= Compare("imu", &cuda, &cpu, Field::kImu, 10, 1e-5, 1e-3);
  ok &= Compare("com", &cuda, &cpu, Field::kCom, 1, 1e-5, 1e-4);
  ok &= Compare("pose", &cuda, &cpu, Field::kPose, 1, 1e-5, 1e-4);
  ok &= Compare("velocity", &cuda, &cpu, Field::kVelocity, 1, 1e-5, 1e-3);
  ok &= Compare("com_jacobian", &cuda, &cpu, Field::kComJacobian, 1, 1e-5, 1e-4);
  ok &= Compare("frame_jacobian", &cuda, &cpu, Field::kFrameJacobian, 1, 1e-5, 1e-4);
  ok &= Compare("stance_jacobian", &cuda, &cpu, Field::kStanceJacobian, 1, 1e-5, 1e-4);
  return ok;
}

/// A robot's bits do not depend on its place, the batch's size or a mad neighbour, who is frozen.
bool CheckIndependence(const mjModel& m, mjData* d, int robots) {
  const BatchModel model = CompileBatchModel(m, Outputs());
  const Crowd crowd = MakeCrowd(m, d, physics_test::kStateKinds, robots);
  CudaBatch clean(model, robots), sick(model, robots);
  CudaBatch turned(model, robots + 7);
  std::vector<int> reversed = Range(robots);
  std::reverse(reversed.begin(), reversed.end());
  Equip(&clean, crowd);
  Equip(&sick, crowd);
  Equip(&turned, crowd, reversed);
  std::vector<float> poison(crowd.qpos.begin() + 5 * m.nq, crowd.qpos.begin() + 6 * m.nq);
  poison[9] = std::numeric_limits<float>::quiet_NaN();
  sick.Write(Field::kQpos, std::vector<int>{5}, poison);
  for (int k = 0; k < 5; ++k) {
    clean.Advance(4);
    sick.Advance(4);
    turned.Advance(4);
  }
  bool same = static_cast<int>(All(&sick, Field::kFault)[5]) == kFaultNotFinite;
  bool place = true;
  for (const Field field : {Field::kQpos, Field::kQacc, Field::kFootForce, Field::kImu}) {
    const std::vector<float> a = All(&clean, field), b = All(&sick, field), c = All(&turned, field);
    const int w = clean.width(field);
    for (int env = 0; env < robots; ++env) {
      for (int i = 0; i < w; ++i) {
        const std::size_t k = static_cast<std::size_t>(env) * w + i;
        same &= env == 5 || a[k] == b[k];
        place &= a[k] == c[static_cast<std::size_t>(reversed[env]) * w + i];
      }
    }
  }
  std::printf("{\"name\":\"physics.cuda_independence\",\"poison\":%s,\"place\":%s}\n",
              same ? "true" : "false",
              place ? "true" : "false");
  return same && place;
}

/// A captured graph does what the calls did, on a stream of the caller's.
bool CheckGraph(const mjModel& m, mjData* d, int robots) {
  const BatchModel model = CompileBatchModel(m, Outputs());
  const Crowd crowd = MakeCrowd(m, d, -1, robots);
  cudaStream_t stream;
  CudaCheck(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  bool same = true;
  {
    CudaBatch direct(model, robots);
    CudaBatch captured(model, robots, {.stream = stream});
    Equip(&direct, crowd);
    Equip(&captured, crowd);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CudaCheck(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capturing");
    captured.Advance(4);
    captured.UpdateKinematics();
    CudaCheck(cudaStreamEndCapture(stream, &graph), "capturing");
    CudaCheck(cudaGraphInstantiate(&exec, graph, 0), "making a graph");
    for (int k = 0; k < 5; ++k) {
      CudaCheck(cudaGraphLaunch(exec, stream), "launching a graph");
      direct.Advance(4);
      direct.UpdateKinematics();
    }
    for (const Field field : {Field::kQpos, Field::kQacc, Field::kCom, Field::kFrameJacobian}) {
      same &= All(&direct, field) == All(&captured, field);
    }
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
  }
  cudaStreamDestroy(stream);
  std::printf("{\"name\":\"physics.cuda_graph\",\"ok\":%s}\n", same ? "true" : "false");
  return same;
}

/// Steps per second; the crowd is that of the CPU's benchmark.
void Bench(const BatchModel& model, const Crowd& crowd, int nq, double friction) {
  for (const int robots : {4096, 16384, 65536}) {
    const double begin = Seconds();
    CudaBatch batch(model, robots);
    const double made = Seconds();
    batch.Advance(4);
    batch.Synchronize();
    const double first = Seconds();
    Equip(&batch, crowd);
    for (int t = 0; t < 5; ++t) batch.Advance(4);
    batch.Synchronize();
    Equip(&batch, crowd);
    constexpr int kCalls = 50;
    const double start = Seconds();
    for (int t = 0; t < kCalls; ++t) batch.Advance(4);
    batch.Synchronize();
    const double rate = 4.0 * kCalls * robots / (Seconds() - start);
    const auto outputs_rate = [&](KinematicsLevel wanted) {
      const double outputs_start = Seconds();
      for (int t = 0; t < 50; ++t) batch.UpdateKinematics(wanted);
      batch.Synchronize();
      return 50.0 * robots / (Seconds() - outputs_start);
    };
    const double frames_rate = outputs_rate(KinematicsLevel::kFrames);
    const double stance_rate = outputs_rate(KinematicsLevel::kStance);
    std::size_t free = 0, total = 0;
    CudaCheck(cudaMemGetInfo(&free, &total), "asking for memory");
    const std::vector<float> fault = All(&batch, Field::kFault), qpos = All(&batch, Field::kQpos);
    double height = 0;
    for (int env = 0; env < robots; ++env) height += qpos[static_cast<std::size_t>(env) * nq + 2];
    const auto faults = std::count_if(fault.begin(), fault.end(), [](float f) { return f != 0; });
    std::printf(
        "{\"name\":\"physics.steps_per_s\",\"value\":%.4g,\"unit\":\"1/s\",\"backend\":\"cuda\","
        "\"model\":\"g1\",\"envs\":%d,\"substeps\":4,\"friction_loss\":%g,\"faults\":%ld,"
        "\"mean_height\":%.4f,\"construct_s\":%.3f,\"first_step_s\":%.3f,\"frames_per_s\":%.4g,"
        "\"stance_per_s\":%.4g,\"device_gib\":%.2f}\n",
        rate,
        robots,
        friction,
        static_cast<long>(faults),
        height / robots,
        made - begin,
        first - made,
        frames_rate,
        stance_rate,
        static_cast<double>(total - free) / (1 << 30));
    std::fflush(stdout);
  }
}

/// A few launches, for a profiler.
void Spin(const mjModel& m, mjData* d, int robots) {
  CudaBatch batch(CompileBatchModel(m, Outputs()), robots);
  Equip(&batch, MakeCrowd(m, d, -1, robots));
  for (int t = 0; t < 10; ++t) batch.Advance(4);
  batch.Synchronize();
}

int Main(int argc, char** argv) {
  bool bench = true;
  int robots = 2048, spin = 0;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--no-bench") == 0) bench = false;
    if (i + 1 >= argc) continue;
    if (std::strcmp(argv[i], "--robots") == 0) robots = std::atoi(argv[++i]);
    if (std::strcmp(argv[i], "--spin") == 0) spin = std::atoi(argv[++i]);
  }
  if (!CudaAvailable()) {
    std::printf("no GPU\n");
    return 77;
  }
  const ModelPtr m = G1();
  RemoveSelfCollision(m.get());
  const DataPtr d(mj_makeData(m.get()));
  if (spin > 0) {
    Spin(*m, d.get(), spin);
    return 0;
  }
  bool ok = true;
  for (const double friction : {0.0, 0.3}) {
    for (int i = 6; i < m->nv; ++i) m->dof_frictionloss[i] = friction;
    std::printf("# g1, friction loss %g\n", friction);
    ok &= CheckStep(*m, d.get(), robots);
    ok &= CheckIndependence(*m, d.get(), robots);
    ok &= CheckGraph(*m, d.get(), robots);
    if (bench) {
      Bench(CompileBatchModel(*m, Outputs()), MakeCrowd(*m, d.get(), -1, 65536), m->nq, friction);
    }
  }
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace silc

int main(int argc, char** argv) { return silc::Main(argc, argv); }
