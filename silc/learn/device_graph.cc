// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/device_graph.h"

#include "silc/base/check.h"
#ifdef SILC_HAVE_CUDA
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace silc {

#ifdef SILC_HAVE_CUDA

struct DeviceGraph::Impl {
  std::unique_ptr<at::cuda::CUDAGraph> graph;
};

bool DeviceGraph::Available() {
  // the default stream cannot be captured
  return c10::cuda::getCurrentCUDAStream() != c10::cuda::getDefaultCUDAStream();
}

void DeviceGraph::Record(const std::function<void()>& work, const DeviceGraph* sharing) {
  // recorded work has a pool of its own; what unrecorded work has freed is of no use to it
  c10::cuda::CUDACachingAllocator::emptyCache();
  auto graph = std::make_unique<at::cuda::CUDAGraph>();
  if (sharing != nullptr && sharing->recorded()) {
    graph->capture_begin(sharing->impl_->graph->pool());
  } else {
    graph->capture_begin();
  }
  work();
  graph->capture_end();
  impl_->graph = std::move(graph);
}

bool DeviceGraph::recorded() const { return impl_->graph != nullptr; }

void DeviceGraph::Replay() {
  SILC_CHECK(recorded());
  impl_->graph->replay();
}

void WaitForDevice() { c10::cuda::getCurrentCUDAStream().synchronize(); }

#else

struct DeviceGraph::Impl {};
bool DeviceGraph::Available() { return false; }
void DeviceGraph::Record(const std::function<void()>&, const DeviceGraph*) {
  SILC_CHECK(false && "no CUDA");
}
bool DeviceGraph::recorded() const { return false; }
void DeviceGraph::Replay() { SILC_CHECK(false && "no CUDA"); }
void WaitForDevice() {}

#endif

DeviceGraph::DeviceGraph() : impl_(std::make_unique<Impl>()) {}
DeviceGraph::~DeviceGraph() = default;
DeviceGraph::DeviceGraph(DeviceGraph&&) noexcept = default;
DeviceGraph& DeviceGraph::operator=(DeviceGraph&&) noexcept = default;

}  // namespace silc
