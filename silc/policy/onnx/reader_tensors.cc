// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include "silc/base/sha256.h"
#include "silc/policy/onnx/reader_impl.h"

namespace silc {

static_assert(std::endian::native == std::endian::little, "ONNX stores tensors little-endian");

bool IsFloatType(int type) {
  return type == pb::TensorProto::FLOAT || type == pb::TensorProto::DOUBLE ||
         type == pb::TensorProto::FLOAT16 || type == pb::TensorProto::BFLOAT16;
}

bool IsIntType(int type) {
  switch (type) {
    case pb::TensorProto::INT64:
    case pb::TensorProto::INT32:
    case pb::TensorProto::INT16:
    case pb::TensorProto::INT8:
    case pb::TensorProto::UINT8:
    case pb::TensorProto::UINT16:
    case pb::TensorProto::UINT32:
    case pb::TensorProto::BOOL:
      return true;
    default:
      return false;
  }
}

namespace {

float HalfToFloat(std::uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const float fraction = static_cast<float>(half & 1023);
  float value;
  if (exponent == 31) {
    value = fraction == 0 ? std::numeric_limits<float>::infinity()
                          : std::numeric_limits<float>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(fraction, -24);  // subnormal
  } else {
    value = std::ldexp(fraction + 1024, exponent - 25);
  }
  return (half & 0x8000) != 0 ? -value : value;
}

template <typename T>
void CopyRaw(const std::string& raw,
             std::size_t count,
             const std::function<void(std::size_t, T)>& take) {
  for (std::size_t i = 0; i < count; ++i) {
    T x;
    std::memcpy(&x, raw.data() + i * sizeof(T), sizeof(T));
    take(i, x);
  }
}

}  // namespace

Shape OnnxReader::TensorShape(const pb::TensorProto& tensor, const std::string& what) const {
  Shape shape;
  std::int64_t count = 1;
  if (tensor.dims_size() > limits_.max_rank)
    Fail(what + ": " + std::to_string(tensor.dims_size()) + " axes");
  for (const std::int64_t size : tensor.dims()) {
    if (size < 0) Fail(what + ": size " + std::to_string(size));
    if (size > 0 && size > limits_.max_elements / std::max<std::int64_t>(count, 1)) {
      Fail(what + ": larger than " + std::to_string(limits_.max_elements) + " elements");
    }
    count *= size;
    shape.push_back(size);
  }
  return shape;
}

Binding OnnxReader::ReadTensor(const pb::TensorProto& tensor, const std::string& name) {
  const std::string what = "tensor '" + name + "'";
  if (tensor.data_location() == pb::TensorProto::EXTERNAL || tensor.external_data_size() > 0) {
    pb::TensorProto inside = tensor;
    inside.clear_external_data();
    inside.clear_data_location();
    inside.set_raw_data(ExternalBytes(tensor, what));
    return ReadTensor(inside, name);
  }
  if (tensor.has_segment()) Fail(what + ": segmented tensors are not supported");
  const Shape shape = TensorShape(tensor, what);
  const std::size_t count = U(NumElements(shape));
  const int type = tensor.data_type();
  Binding binding;
  if (IsFloatType(type)) {
    std::vector<float> data = ReadFloats(tensor, type, count, what);
    binding.value = builder_.AddConstant(name, shape, std::move(data));
  } else if (IsIntType(type)) {
    binding.is_int = true;
    binding.ints.shape = shape;
    binding.ints.data = ReadInts(tensor, type, count, what);
  } else {
    Fail(what + ": element type " + std::to_string(type) + " is not supported");
  }
  return binding;
}

// A whole number of an external_data entry.
std::uint64_t OnnxReader::ExternalNumber(const std::string& text, const std::string& what) const {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    Fail(what + ": external data: '" + text + "' is no whole number");
  }
  return value;
}

// The part of another file that a tensor names. The file lies beside the model: what a stranger's
// model names is not read from anywhere else.
std::string OnnxReader::ExternalBytes(const pb::TensorProto& tensor, const std::string& what) {
  namespace fs = std::filesystem;
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = ExternalNumber(entry.value(), what);
    if (entry.key() == "length") length = ExternalNumber(entry.value(), what);
  }
  if (folder_.empty()) Fail(what + ": its data is in another file");
  if (location.empty() || location == "." || location == ".." ||
      location.find_first_of(std::string("/\\\0", 3)) != std::string::npos) {
    Fail(what + ": external data in '" + location +
         "': must be the name of a file in the policy's own folder");
  }
  const fs::path file = fs::path(folder_) / location;
  std::error_code error;
  const fs::path real = fs::canonical(file, error);
  if (error) Fail(what + ": its data is in " + file.string() + ", which is not there");
  if (real.parent_path() != fs::canonical(folder_, error)) {
    Fail(what + ": its data is in " + file.string() +
         ", a link out of the policy's folder; put the file itself there");
  }
  if (!fs::is_regular_file(real, error)) Fail(what + ": " + file.string() + ": no regular file");
  const std::uint64_t size = fs::file_size(real, error);
  if (error || offset > size || length.value_or(size - offset) > size - offset) {
    Fail(what + ": its data is at " + std::to_string(offset) + " of " + file.string() +
         ", beyond the end of that file");
  }
  const std::uint64_t bytes = length.value_or(size - offset);
  external_bytes_ += bytes;
  if (external_bytes_ > kMaxOnnxBytes) {
    Fail(what + ": more than " + std::to_string(kMaxOnnxBytes) + " bytes of external data");
  }
  std::string data(bytes, '\0');
  std::ifstream stream(real, std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(offset));
  stream.read(data.data(), static_cast<std::streamsize>(bytes));
  if (!stream) Fail(what + ": " + file.string() + " cannot be read");
  external_hash_ = Sha256(external_hash_ + Sha256(data));  // in the order of the tensors
  return data;
}

void OnnxReader::CheckSize(const std::string& what,
                           std::size_t got,
                           std::size_t expected,
                           const char* unit) const {
  if (got != expected) {
    Fail(what + ": " + std::to_string(got) + " " + unit + " where its shape needs " +
         std::to_string(expected) + "; the file is damaged");
  }
}

std::vector<float> OnnxReader::ReadFloats(const pb::TensorProto& tensor,
                                          int type,
                                          std::size_t count,
                                          const std::string& what) const {
  // sizes are compared before the vector is made: a shape may promise what the file does not hold
  const std::string& raw = tensor.raw_data();
  const bool has_raw = !raw.empty();
  std::vector<float> data;
  const auto make = [&](std::size_t got, std::size_t expected, const char* unit) {
    CheckSize(what, got, expected, unit);
    data.resize(count);
  };
  switch (type) {
    case pb::TensorProto::FLOAT:
      if (has_raw) {
        make(raw.size(), count * 4, "bytes");
        std::memcpy(data.data(), raw.data(), raw.size());
      } else {
        make(U(tensor.float_data_size()), count, "numbers");
        std::copy(tensor.float_data().begin(), tensor.float_data().end(), data.begin());
      }
      break;
    case pb::TensorProto::DOUBLE:
      if (has_raw) {
        make(raw.size(), count * 8, "bytes");
        CopyRaw<double>(
            raw, count, [&](std::size_t i, double x) { data[i] = static_cast<float>(x); });
      } else {
        make(U(tensor.double_data_size()), count, "numbers");
        for (std::size_t i = 0; i < count; ++i)
          data[i] = static_cast<float>(tensor.double_data(static_cast<int>(i)));
      }
      break;
    default: {
      const auto convert = [&](std::uint16_t bits) {
        return type == pb::TensorProto::FLOAT16
                   ? HalfToFloat(bits)
                   : std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
      };
      if (has_raw) {
        make(raw.size(), count * 2, "bytes");
        CopyRaw<std::uint16_t>(
            raw, count, [&](std::size_t i, std::uint16_t x) { data[i] = convert(x); });
      } else {
        make(U(tensor.int32_data_size()), count, "numbers");
        for (std::size_t i = 0; i < count; ++i) {
          data[i] = convert(static_cast<std::uint16_t>(tensor.int32_data(static_cast<int>(i))));
        }
      }
    }
  }
  return data;
}

std::vector<std::int64_t> OnnxReader::ReadInts(const pb::TensorProto& tensor,
                                               int type,
                                               std::size_t count,
                                               const std::string& what) const {
  const std::string& raw = tensor.raw_data();
  std::vector<std::int64_t> data;
  if (!raw.empty()) {
    const auto read = [&]<typename T>(T) {
      CheckSize(what, raw.size(), count * sizeof(T), "bytes");
      data.resize(count);
      CopyRaw<T>(raw, count, [&](std::size_t i, T x) { data[i] = static_cast<std::int64_t>(x); });
    };
    switch (type) {
      case pb::TensorProto::INT64:
        read(std::int64_t{});
        break;
      case pb::TensorProto::INT32:
        read(std::int32_t{});
        break;
      case pb::TensorProto::INT16:
        read(std::int16_t{});
        break;
      case pb::TensorProto::INT8:
        read(std::int8_t{});
        break;
      case pb::TensorProto::UINT16:
        read(std::uint16_t{});
        break;
      case pb::TensorProto::UINT32:
        read(std::uint32_t{});
        break;
      default:
        read(std::uint8_t{});
        break;
    }
  } else if (type == pb::TensorProto::INT64) {
    CheckSize(what, U(tensor.int64_data_size()), count, "numbers");
    data.assign(tensor.int64_data().begin(), tensor.int64_data().end());
  } else if (type == pb::TensorProto::UINT32) {
    CheckSize(what, U(tensor.uint64_data_size()), count, "numbers");
    for (const auto x : tensor.uint64_data()) data.push_back(static_cast<std::int64_t>(x));
  } else {
    CheckSize(what, U(tensor.int32_data_size()), count, "numbers");
    data.assign(tensor.int32_data().begin(), tensor.int32_data().end());
  }
  return data;
}

}  // namespace silc
