// SPDX-License-Identifier: Apache-2.0
#ifdef __linux__
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/base/nearest.h"
#include "silc/physics/batch.h"
#include "silc/physics/group_kernel.h"

namespace silc {
namespace {

constexpr std::size_t kAlignment = 64;  // of an AVX-512 vector and of a cache line
constexpr std::size_t kHugePage = std::size_t{2} << 20;

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Memory = std::unique_ptr<void, Free>;

Memory Allocate(std::size_t bytes) {
  const std::size_t unit = kHugePage;
  const std::size_t rounded = (bytes + unit - 1) / unit * unit;
  void* p = std::aligned_alloc(unit, rounded);
  if (p == nullptr) throw std::bad_alloc();  // how many robots there are is the user's choice
#ifdef __linux__
  // a step walks over hundreds of 4 KiB pages; advice only, so a refusal does not matter
  madvise(p, rounded, MADV_HUGEPAGE);
#endif
  std::memset(p, 0, rounded);
  return Memory(p);
}

GroupKernel Choose(const std::string& name) {
  std::vector<std::string> known;
  for (const GroupKernel& kernel : AvailableGroupKernels()) {
    if (name.empty() || name == kernel.name) return kernel;
    known.push_back(kernel.name);
  }
  throw ConfigError("kernel '" + name + "' cannot run on this machine" + DidYouMean(name, known));
}

}  // namespace

struct CpuBatch::Impl {
  Impl(const BatchModel& model, int num_envs, const CpuBatchOptions& opts)
      : options(opts),
        kernel(Choose(opts.kernel)),
        step(ToFloat(model.step)),
        pairs(ToFloat(model.pairs)),
        layout(MakeLayout(model.step)),
        num_groups((num_envs + kernel.lanes - 1) / kernel.lanes),
        group_stride(static_cast<long>(layout.size) * kernel.lanes),
        memory(Allocate(sizeof(float) * group_stride * num_groups)),
        pool(opts.pool ? opts.pool : std::make_shared<ThreadPool>(std::max(1, opts.threads))),
        counts(pool->size()) {
    for (int i = 0; i < pool->size(); ++i) workspaces.push_back(Allocate(kernel.workspace_bytes));
    const std::vector<double> row = DefaultRow(model);
    for (int env = 0; env < num_groups * kernel.lanes; ++env) {
      for (int i = 0; i < layout.size; ++i) *At(env, i) = static_cast<float>(row[i]);
      // lanes that fill up the last group stand still
      if (env >= num_envs) *At(env, layout.offset[static_cast<int>(Field::kFault)]) = kFaultAbsurd;
    }
  }

  float* Group(int group) { return static_cast<float*>(memory.get()) + group * group_stride; }
  float* At(int env, int i) {
    return Group(env / kernel.lanes) + static_cast<long>(i) * kernel.lanes + env % kernel.lanes;
  }

  void Advance(int worker, int group, int substeps) {
    kernel.advance(step,
                   pairs,
                   layout,
                   Group(group),
                   options.step,
                   substeps,
                   &counts[worker].value,
                   workspaces[worker].get());
  }
  void Outputs(int worker, int group, KinematicsLevel wanted) {
    kernel.outputs(step, layout, Group(group), wanted, workspaces[worker].get());
  }

  const CpuBatchOptions options;
  const GroupKernel kernel;
  const StepModel<float> step;
  const PairModel<float> pairs;
  const FieldLayout layout;
  const int num_groups;
  const long group_stride;
  Memory memory;
  std::vector<Memory> workspaces;  // one per worker
  const std::shared_ptr<ThreadPool> pool;
  struct alignas(kAlignment) Counts {
    StepCounts value;
  };
  std::vector<Counts> counts;  // one per worker, a cache line apart
};

CpuBatch::CpuBatch(BatchModel model, int num_envs, const CpuBatchOptions& options)
    : HostBatch(std::move(model), num_envs),
      impl_(std::make_unique<Impl>(model_, num_envs, options)) {}

CpuBatch::~CpuBatch() = default;

FieldView CpuBatch::view(Field field) {
  Impl& s = *impl_;
  const int offset = s.layout.offset[static_cast<int>(field)];
  return {s.Group(0) + static_cast<long>(offset) * s.kernel.lanes,
          s.kernel.lanes,
          s.group_stride,
          width(field),
          false};
}

void CpuBatch::SetBodies(int env, const std::vector<double>& mass, const std::vector<double>& com) {
  SILC_CHECK(env >= 0 && env < num_envs());
  const std::vector<double> inertia = LinkInertias(model_, mass, com);
  const FieldView v = view(Field::kInertia);
  for (int i = 0; i < v.width; ++i) v(env, i) = static_cast<float>(inertia[i]);
}

void CpuBatch::Advance(int substeps) {
  Impl& s = *impl_;
  SILC_CHECK(substeps >= 1);
  s.pool->ParallelFor(s.num_groups,
                      [&](int worker, int group) { s.Advance(worker, group, substeps); });
}

void CpuBatch::UpdateKinematics(KinematicsLevel wanted) {
  Impl& s = *impl_;
  s.pool->ParallelFor(s.num_groups,
                      [&](int worker, int group) { s.Outputs(worker, group, wanted); });
}

void CpuBatch::AdvanceRange(int worker, int begin, int end, int substeps, KinematicsLevel wanted) {
  Impl& s = *impl_;
  const int lanes = s.kernel.lanes;
  SILC_CHECK(substeps >= 1 && begin % lanes == 0 && (end % lanes == 0 || end == num_envs()));
  for (int group = begin / lanes; group * lanes < end; ++group) {
    s.Advance(worker, group, substeps);
    s.Outputs(worker, group, wanted);
  }
}

std::string CpuBatch::name() const { return impl_->kernel.name; }
int CpuBatch::lanes() const { return impl_->kernel.lanes; }

StepCounts CpuBatch::counts() const {
  StepCounts sum;
  for (const Impl::Counts& c : impl_->counts) sum.Add(c.value);
  return sum;
}

}  // namespace silc
