// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/event_file.h"

#include <bit>
#include <cerrno>
#include <cstring>

#include "silc/base/crc32c.h"
#include "silc/base/error.h"

namespace silc {
namespace {

void Little(std::uint64_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

// protobuf's wire format: a key is field number and type; 0 varint, 1 64 bits, 2 bytes, 5 32 bits
void Varint(std::uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}
void Key(int field, int type, std::string* out) {
  Varint(static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(type), out);
}
void Bytes(int field, std::string_view bytes, std::string* out) {
  Key(field, 2, out);
  Varint(bytes.size(), out);
  *out += bytes;
}
void Double(int field, double value, std::string* out) {
  Key(field, 1, out);
  Little(std::bit_cast<std::uint64_t>(value), 8, out);
}

}  // namespace

std::string FrameRecord(std::string_view bytes) {
  std::string record;
  Little(bytes.size(), 8, &record);
  Little(MaskedCrc32c(record), 4, &record);
  record += bytes;
  Little(MaskedCrc32c(bytes), 4, &record);
  return record;
}

std::string EncodeFileVersion(double wall_time) {
  std::string event;
  Double(1, wall_time, &event);       // Event.wall_time
  Bytes(3, "brain.Event:2", &event);  // Event.file_version
  return event;
}

std::string EncodeScalars(double wall_time, std::int64_t step, const Scalars& scalars) {
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    Bytes(1, tag, &value);  // Summary.Value.tag
    Key(2, 5, &value);      // Summary.Value.simple_value
    Little(std::bit_cast<std::uint32_t>(static_cast<float>(number)), 4, &value);
    Bytes(1, value, &summary);  // Summary.value
  }
  std::string event;
  Double(1, wall_time, &event);
  Key(2, 0, &event);  // Event.step
  Varint(static_cast<std::uint64_t>(step), &event);
  Bytes(5, summary, &event);  // Event.summary
  return event;
}

EventFile::EventFile(const std::string& folder, double wall_time)
    : path_(folder + "/events.out.tfevents." + std::to_string(static_cast<long long>(wall_time)) +
            ".silc"),
      file_(std::fopen(path_.c_str(), "ab")) {
  if (!file_) throw RunError(path_ + ": cannot be written: " + std::strerror(errno));
  Append(EncodeFileVersion(wall_time));
}

void EventFile::Write(double wall_time, std::int64_t step, const Scalars& scalars) {
  Append(EncodeScalars(wall_time, step, scalars));
}

void EventFile::Append(const std::string& event) {
  const std::string record = FrameRecord(event);
  if (std::fwrite(record.data(), 1, record.size(), file_.get()) != record.size() ||
      std::fflush(file_.get()) != 0) {
    throw RunError(path_ + ": cannot be written: " + std::strerror(errno));
  }
}

}  // namespace silc
