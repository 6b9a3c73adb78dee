// SPDX-License-Identifier: Apache-2.0
#pragma once

// For .cu files and sources that call the CUDA runtime.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "silc/base/error.h"

namespace silc {

inline void CudaCheck(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw RunError(std::string("CUDA: ") + what + ": " + cudaGetErrorString(status));
  }
}

/// GPU memory with an owner.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(std::size_t count) : size_(count) {
    CudaCheck(cudaMalloc(&data_, std::max<std::size_t>(count, 1) * sizeof(T)),
              "allocating device memory");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(DeviceArray&& other) noexcept : data_(other.data_), size_(other.size_) {
    other.data_ = nullptr;
    other.size_ = 0;
  }
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }

  /// Enqueued; `values` must live until the stream has got there.
  void Upload(const T* values, cudaStream_t stream) {
    CudaCheck(cudaMemcpyAsync(data_, values, bytes(), cudaMemcpyHostToDevice, stream),
              "copying to the device");
  }
  void Download(T* values, cudaStream_t stream) const {
    CudaCheck(cudaMemcpyAsync(values, data_, bytes(), cudaMemcpyDeviceToHost, stream),
              "copying from the device");
  }
  void Clear(cudaStream_t stream) {
    CudaCheck(cudaMemsetAsync(data_, 0, bytes(), stream), "clearing device memory");
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace silc
