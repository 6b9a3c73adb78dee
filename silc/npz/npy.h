// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace silc {

/// Sizes along each axis; () is a single value. In an expected shape kAnySize fits every size.
using NpyShape = std::vector<std::int64_t>;
constexpr std::int64_t kAnySize = -1;

/// "(251, 36)", "(251,)", "()"; kAnySize is "*". As Python writes it.
std::string NpyShapeText(const NpyShape& shape);

/// One array of a NumPy file, held in C order whatever order and byte order the file used. Every
/// accessor returns what was asked for or throws a ConfigError that starts with "FILE: array
/// 'NAME'".
class NpyArray {
 public:
  enum class Kind { kBool, kInt, kUint, kFloat, kText };
  enum class Finite { kRequired, kNotRequired };

  const NpyShape& shape() const { return shape_; }
  std::int64_t size() const { return size_; }  ///< elements
  Kind kind() const { return kind_; }
  const std::string& dtype() const { return dtype_; }  ///< as in the file: "<f4"

  /// Numbers of any kind (true is 1), last axis fastest. NaN and infinities are errors that name
  /// their index, unless allowed; so are integers that no double holds exactly.
  std::vector<double> AsDoubles(const NpyShape& expected, Finite finite = Finite::kRequired) const;
  /// The value of an array of one element, () or (1,).
  double AsDouble() const;
  /// Integers and booleans; floats are errors, whole or not.
  std::vector<std::int64_t> AsInts(const NpyShape& expected) const;
  /// Fixed-width unicode, as UTF-8, without the zeros that pad it.
  std::vector<std::string> AsStrings(const NpyShape& expected) const;
  std::string AsString() const;  ///< of an array of one element

  /// Throws ConfigError unless the shape fits: "shape (251, 35), expected (*, 36)".
  void CheckShape(const NpyShape& expected) const;
  /// "FILE: array 'NAME'", the beginning of any message about this array.
  const std::string& Where() const { return where_; }
  /// Throws ConfigError(Where() + ": " + message).
  [[noreturn]] void Fail(const std::string& message) const;

  /// Memory the widest answer of an accessor takes; never less than the array itself. Limits are
  /// held against this.                                                                   [byte]
  std::size_t AnswerBytes() const { return static_cast<std::size_t>(size_) * answer_item_bytes_; }

 private:
  friend NpyArray ParseNpy(std::string_view bytes, const std::string& where, std::size_t max_bytes);
  NpyArray() = default;
  std::string IndexText(std::int64_t element) const;
  void CheckOneElement() const;

  std::string where_;
  std::string dtype_;
  Kind kind_ = Kind::kFloat;
  std::size_t item_bytes_ = 0;
  std::size_t answer_item_bytes_ = 0;
  NpyShape shape_;
  std::int64_t size_ = 0;
  std::string data_;  // C order, this machine's byte order
};

/// A .npy file in memory: format versions 1 to 3, of booleans, integers (i1 to i8, u1 to u8),
/// floats (f2, f4, f8) and fixed-width unicode. `where` starts every message about it. Throws
/// ConfigError for everything else: object arrays (pickles: reading one runs whatever code is in
/// it), records, complex numbers, times; a shape that does not match the data to the byte; an array
/// that takes, or whose values in the widest answer would take, more than max_bytes.
NpyArray ParseNpy(std::string_view bytes, const std::string& where, std::size_t max_bytes);

/// A .npy file of doubles, or of floats when `single_precision` (rounded to nearest).
/// @pre values.size() is the product of the shape
std::string EncodeNpy(const NpyShape& shape,
                      const std::vector<double>& values,
                      bool single_precision = false);

}  // namespace silc
