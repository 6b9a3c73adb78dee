// SPDX-License-Identifier: Apache-2.0
// The format is NEP 1 of NumPy ("A Simple File Format for NumPy Arrays"): a magic string, a Python
// dictionary with dtype, order and shape, then the data.
#include "silc/npz/npy.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/base/limits.h"
#include "silc/base/utf8.h"

namespace silc {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;  // of the data in files NumPy writes

struct Header {
  std::string dtype;
  bool fortran_order = false;
  NpyShape shape;
};

// Reads the one Python literal a header may hold, {'descr': '<f4', 'fortran_order': False, 'shape':
// (3, 4), }, and nothing more of Python.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  Header Parse() {
    Header header;
    bool has_dtype = false, has_order = false, has_shape = false;
    Expect('{');
    while (!Take('}')) {
      const std::string key = Quoted();
      bool* has = key == "descr"           ? &has_dtype
                  : key == "fortran_order" ? &has_order
                  : key == "shape"         ? &has_shape
                                           : nullptr;
      if (has == nullptr || *has) Fail("an unknown or repeated key");
      *has = true;
      Expect(':');
      if (has == &has_dtype) {
        SkipSpace();
        if (Peek() == '[' || Peek() == '(') {
          throw ConfigError(where_ +
                            ": records (structured dtypes) are not supported; save each "
                            "field as an array of its own");
        }
        header.dtype = Quoted();
      } else if (has == &has_order) {
        header.fortran_order = Boolean();
      } else {
        header.shape = Tuple();
      }
      if (!Take(',')) {
        Expect('}');
        break;
      }
    }
    SkipSpace();
    if (position_ != text_.size()) Fail("something after the closing brace");
    if (!has_dtype || !has_order || !has_shape) Fail("descr, fortran_order or shape missing");
    return header;
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw ConfigError(where_ + ": damaged: its header is no NumPy header (" + what + ")");
  }
  char Peek() const { return position_ < text_.size() ? text_[position_] : '\0'; }
  void SkipSpace() {
    while (Peek() == ' ' || Peek() == '\n' || Peek() == '\t') ++position_;
  }
  bool Take(char c) {
    SkipSpace();
    if (Peek() != c) return false;
    ++position_;
    return true;
  }
  void Expect(char c) {
    if (!Take(c)) Fail(std::string("no '") + c + "' where one must be");
  }
  bool TakeWord(std::string_view word) {
    if (text_.substr(position_, word.size()) != word) return false;
    position_ += word.size();
    return true;
  }
  std::string Quoted() {
    SkipSpace();
    const char quote = Peek();
    if (quote != '\'' && quote != '"') Fail("no string where one must be");
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) Fail("a string without end");
    std::string text(text_.substr(position_ + 1, end - position_ - 1));
    position_ = end + 1;
    if (!IsPlainText(text) || text.find('\\') != std::string::npos) Fail("a string with escapes");
    return text;
  }
  bool Boolean() {
    SkipSpace();
    if (TakeWord("True")) return true;
    if (!TakeWord("False")) Fail("neither True nor False");
    return false;
  }
  NpyShape Tuple() {
    NpyShape shape;
    Expect('(');
    bool comma = true;
    while (!Take(')')) {
      if (!comma) Fail("a shape without commas");
      if (shape.size() == kMaxNpyAxes) Fail("more than " + std::to_string(kMaxNpyAxes) + " axes");
      shape.push_back(Size());
      comma = Take(',');
    }
    // (5) is a number in Python, (5,) a shape
    if (shape.size() == 1 && !comma) Fail("a shape without commas");
    return shape;
  }
  std::int64_t Size() {
    SkipSpace();
    std::int64_t value = 0;
    const std::size_t begin = position_;
    for (; Peek() >= '0' && Peek() <= '9'; ++position_) {
      const int digit = Peek() - '0';
      if (value > (std::numeric_limits<std::int64_t>::max() - digit) / 10) Fail("a size too large");
      value = 10 * value + digit;
    }
    if (position_ == begin) Fail("a size that is no number");
    return value;
  }

  std::string_view text_;
  std::size_t position_ = 0;
  const std::string& where_;
};

struct Type {
  NpyArray::Kind kind;
  std::size_t item_bytes;
  std::size_t word_bytes;  // what byte order applies to
  bool swap;               // the file's byte order is not ours
};

Type ParseType(const std::string& dtype, const std::string& where) {
  using Kind = NpyArray::Kind;
  if (dtype.find('O') != std::string::npos) {
    throw ConfigError(where +
                      ": holds Python objects (a pickle), and reading one can run any code; save "
                      "arrays of plain numbers instead");
  }
  const auto unsupported = [&] {
    throw ConfigError(where + ": dtype '" + dtype +
                      "' is not supported; known: bool, i1 to i8, u1 to u8, f2, f4, f8, U");
  };
  if (dtype.size() < 3 || dtype.size() > 11) unsupported();
  const char order = dtype[0];
  const std::string digits = dtype.substr(2);
  if (!std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    unsupported();
  }
  const std::size_t number = std::stoul(digits);  // nine digits at most

  const bool word = number == 2 || number == 4 || number == 8;
  Type type{};
  switch (dtype[1]) {
    case 'b':
      if (number != 1) unsupported();
      type = {Kind::kBool, 1, 1, false};
      break;
    case 'i':
    case 'u':
      if (number != 1 && !word) unsupported();
      type = {dtype[1] == 'i' ? Kind::kInt : Kind::kUint, number, number, false};
      break;
    case 'f':
      if (!word) unsupported();
      type = {Kind::kFloat, number, number, false};
      break;
    case 'U':
      type = {Kind::kText, 4 * number, 4, false};
      break;
    default:
      unsupported();
  }
  const bool little = std::endian::native == std::endian::little;
  if (order == '<' || order == '>') {
    type.swap = type.word_bytes > 1 && (order == '<') != little;
  } else if (order != '|' || type.word_bytes > 1) {
    unsupported();
  }
  return type;
}

// IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits.
double HalfToDouble(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1F;
  const int fraction = bits & 0x3FF;
  double magnitude = 0;
  if (exponent == 0) {
    magnitude = std::ldexp(fraction, -24);
  } else if (exponent == 31) {
    magnitude = fraction == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
  } else {
    magnitude = std::ldexp(1024 + fraction, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

template <typename T>
T LoadAs(const std::string& data, std::size_t offset) {
  T value;
  std::memcpy(&value, data.data() + offset, sizeof value);
  return value;
}

// Item `element` as the widest integer of its kind.
std::int64_t LoadInt(const std::string& data, std::size_t element, std::size_t item_bytes) {
  switch (item_bytes) {
    case 1:
      return LoadAs<std::int8_t>(data, element);
    case 2:
      return LoadAs<std::int16_t>(data, 2 * element);
    case 4:
      return LoadAs<std::int32_t>(data, 4 * element);
    default:
      return LoadAs<std::int64_t>(data, 8 * element);
  }
}
std::uint64_t LoadUint(const std::string& data, std::size_t element, std::size_t item_bytes) {
  switch (item_bytes) {
    case 1:
      return LoadAs<std::uint8_t>(data, element);
    case 2:
      return LoadAs<std::uint16_t>(data, 2 * element);
    case 4:
      return LoadAs<std::uint32_t>(data, 4 * element);
    default:
      return LoadAs<std::uint64_t>(data, 8 * element);
  }
}
double LoadFloat(const std::string& data, std::size_t element, std::size_t item_bytes) {
  switch (item_bytes) {
    case 2:
      return HalfToDouble(LoadAs<std::uint16_t>(data, 2 * element));
    case 4:
      return static_cast<double>(LoadAs<float>(data, 4 * element));
    default:
      return LoadAs<double>(data, 8 * element);
  }
}

// First axis fastest to last axis fastest.
std::string FortranToC(std::string_view data, const NpyShape& shape, std::size_t item_bytes) {
  std::string ordered(data.size(), '\0');
  const std::size_t num_axes = shape.size();
  std::vector<std::size_t> stride(num_axes, 1);  // in the file, in items
  for (std::size_t axis = 1; axis < num_axes; ++axis) {
    stride[axis] = stride[axis - 1] * static_cast<std::size_t>(shape[axis - 1]);
  }
  NpyShape index(num_axes, 0);
  std::size_t from = 0;
  for (std::size_t to = 0; to < data.size(); to += item_bytes) {
    std::memcpy(ordered.data() + to, data.data() + from * item_bytes, item_bytes);
    for (std::size_t axis = num_axes; axis-- > 0;) {
      from += stride[axis];
      if (++index[axis] < shape[axis]) break;
      from -= stride[axis] * static_cast<std::size_t>(shape[axis]);
      index[axis] = 0;
    }
  }
  return ordered;
}

}  // namespace

std::string NpyShapeText(const NpyShape& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += shape[i] == kAnySize ? "*" : std::to_string(shape[i]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

void NpyArray::Fail(const std::string& message) const {
  throw ConfigError(where_ + ": " + message);
}

std::string NpyArray::IndexText(std::int64_t element) const {
  NpyShape index(shape_.size());
  for (std::size_t axis = shape_.size(); axis-- > 0;) {
    index[axis] = element % shape_[axis];
    element /= shape_[axis];
  }
  std::string text = "[";
  for (std::size_t i = 0; i < index.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(index[i]);
  return text + "]";
}

void NpyArray::CheckShape(const NpyShape& expected) const {
  bool fits = shape_.size() == expected.size();
  for (std::size_t i = 0; fits && i < shape_.size(); ++i) {
    fits = expected[i] == kAnySize || expected[i] == shape_[i];
  }
  if (!fits) Fail("shape " + NpyShapeText(shape_) + ", expected " + NpyShapeText(expected));
}

void NpyArray::CheckOneElement() const {
  if (!shape_.empty() && shape_ != NpyShape{1}) {
    Fail("shape " + NpyShapeText(shape_) + ", expected a single value: () or (1,)");
  }
}

std::vector<double> NpyArray::AsDoubles(const NpyShape& expected, Finite finite) const {
  CheckShape(expected);
  if (kind_ == Kind::kText) Fail("dtype '" + dtype_ + "' is text, expected numbers");
  constexpr std::int64_t kExact = std::int64_t{1} << 53;  // every integer up to it is a double
  std::vector<double> values(size_);
  for (std::int64_t i = 0; i < size_; ++i) {
    const auto inexact = [&](const std::string& value) {
      Fail("value " + value + " at " + IndexText(i) +
           " is more than a double holds exactly (2^53)");
    };
    if (kind_ == Kind::kFloat) {
      values[i] = LoadFloat(data_, i, item_bytes_);
      if (finite == Finite::kRequired && !std::isfinite(values[i])) {
        Fail("value " +
             std::string(std::isnan(values[i]) ? "NaN"
                         : values[i] > 0       ? "inf"
                                               : "-inf") +
             " at " + IndexText(i) + " is not finite");
      }
    } else if (kind_ == Kind::kInt) {
      const std::int64_t value = LoadInt(data_, i, item_bytes_);
      if (value > kExact || value < -kExact) inexact(std::to_string(value));
      values[i] = static_cast<double>(value);
    } else {
      const std::uint64_t value = LoadUint(data_, i, item_bytes_);
      if (value > static_cast<std::uint64_t>(kExact)) inexact(std::to_string(value));
      values[i] = static_cast<double>(value);
    }
  }
  return values;
}

double NpyArray::AsDouble() const {
  CheckOneElement();
  return AsDoubles(shape_)[0];
}

std::vector<std::int64_t> NpyArray::AsInts(const NpyShape& expected) const {
  CheckShape(expected);
  if (kind_ == Kind::kText || kind_ == Kind::kFloat) {
    Fail("dtype '" + dtype_ + "', expected integers");
  }
  std::vector<std::int64_t> values(size_);
  for (std::int64_t i = 0; i < size_; ++i) {
    if (kind_ == Kind::kInt) {
      values[i] = LoadInt(data_, i, item_bytes_);
      continue;
    }
    const std::uint64_t value = LoadUint(data_, i, item_bytes_);
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      Fail("value " + std::to_string(value) + " at " + IndexText(i) + " is more than 2^63 - 1");
    }
    values[i] = static_cast<std::int64_t>(value);
  }
  return values;
}

std::vector<std::string> NpyArray::AsStrings(const NpyShape& expected) const {
  CheckShape(expected);
  if (kind_ != Kind::kText) Fail("dtype '" + dtype_ + "' is no text");
  std::vector<std::string> texts(size_);
  const std::size_t num_characters = item_bytes_ / 4;
  for (std::int64_t i = 0; i < size_; ++i) {
    const auto character = [&](std::size_t k) {
      return LoadAs<std::uint32_t>(data_, i * item_bytes_ + 4 * k);
    };
    std::size_t length = num_characters;
    while (length > 0 && character(length - 1) == 0) --length;
    for (std::size_t k = 0; k < length; ++k) {
      if (!AppendUtf8(character(k), &texts[i])) Fail("text at " + IndexText(i) + " is no unicode");
    }
  }
  return texts;
}

std::string NpyArray::AsString() const {
  CheckOneElement();
  return AsStrings(shape_)[0];
}

NpyArray ParseNpy(std::string_view bytes, const std::string& where, std::size_t max_bytes) {
  const auto damaged = [&](const std::string& what) {
    throw ConfigError(where + ": damaged: " + what);
  };
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    throw ConfigError(where + ": no NumPy array: it does not start as one");
  }
  // version, then the header's length in two bytes (version 1) or four
  if (bytes.size() < kMagic.size() + 2) damaged("cut short in its header");
  const int major = static_cast<unsigned char>(bytes[6]);
  if (major < 1 || major > 3 || bytes[7] != 0) {
    throw ConfigError(where + ": NumPy format version " + std::to_string(major) + "." +
                      std::to_string(static_cast<unsigned char>(bytes[7])) +
                      " is not supported; known: 1.0, 2.0, 3.0");
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t header_begin = kMagic.size() + 2 + length_bytes;
  if (bytes.size() < header_begin) damaged("cut short in its header");
  std::size_t header_bytes = 0;
  for (std::size_t i = length_bytes; i-- > 0;) {
    header_bytes = header_bytes << 8 | static_cast<unsigned char>(bytes[8 + i]);
  }
  if (header_bytes > kMaxNpyHeaderBytes) {
    damaged("a header of " + std::to_string(header_bytes) + " bytes");
  }
  if (bytes.size() - header_begin < header_bytes) damaged("cut short in its header");
  const Header header = HeaderParser(bytes.substr(header_begin, header_bytes), where).Parse();
  const Type type = ParseType(header.dtype, where);

  NpyArray array;
  array.where_ = where;
  array.dtype_ = header.dtype;
  array.kind_ = type.kind;
  array.item_bytes_ = type.item_bytes;
  // numbers are asked for as doubles; UTF-8 is never longer than the four bytes a character has
  // here
  array.answer_item_bytes_ =
      type.kind == NpyArray::Kind::kText ? sizeof(std::string) + type.item_bytes : sizeof(double);
  array.shape_ = header.shape;

  // the size is bounded while it is multiplied up, so nothing here can overflow
  const std::int64_t max_size = static_cast<std::int64_t>(std::min<std::size_t>(
      max_bytes / array.answer_item_bytes_, std::numeric_limits<std::int64_t>::max()));
  const bool empty = std::count(header.shape.begin(), header.shape.end(), 0) > 0;
  array.size_ = 1;
  bool within = empty || max_size >= 1;
  for (const std::int64_t size : header.shape) {
    if (empty || !within) break;
    within = size <= max_size / array.size_;
    if (within) array.size_ *= size;
  }
  if (empty) array.size_ = 0;
  if (!within) {
    throw ConfigError(where + ": shape " + NpyShapeText(header.shape) + " of '" + header.dtype +
                      "' takes more than the limit of " + std::to_string(max_bytes) + " bytes");
  }
  const std::string_view data = bytes.substr(header_begin + header_bytes);
  const std::size_t expected_bytes = static_cast<std::size_t>(array.size_) * type.item_bytes;
  if (data.size() != expected_bytes) {
    damaged(std::to_string(data.size()) + " bytes of data, " + std::to_string(expected_bytes) +
            " expected for shape " + NpyShapeText(header.shape) + " of '" + header.dtype + "'");
  }

  const bool reorder = header.fortran_order && header.shape.size() > 1 && !data.empty();
  array.data_ = reorder ? FortranToC(data, header.shape, type.item_bytes) : std::string(data);
  if (type.swap) {
    for (std::size_t i = 0; i < array.data_.size(); i += type.word_bytes) {
      std::reverse(array.data_.begin() + i, array.data_.begin() + i + type.word_bytes);
    }
  }
  if (type.kind == NpyArray::Kind::kBool &&
      std::any_of(data.begin(), data.end(), [](char c) { return c != 0 && c != 1; })) {
    damaged("a bool that is neither 0 nor 1");
  }
  return array;
}

std::string EncodeNpy(const NpyShape& shape,
                      const std::vector<double>& values,
                      bool single_precision) {
  static_assert(std::endian::native == std::endian::little, "the dtypes below say little-endian");
  std::size_t size = 1;
  for (const std::int64_t axis : shape) size *= static_cast<std::size_t>(axis);
  SILC_CHECK(size == values.size() && shape.size() <= kMaxNpyAxes);

  std::string header = single_precision ? "{'descr': '<f4'" : "{'descr': '<f8'";
  header += ", 'fortran_order': False, 'shape': " + NpyShapeText(shape) + ", }";
  // spaces up to the alignment, so that others may map the file into memory; then a line end
  const std::size_t before = kMagic.size() + 2 + 2;
  const std::size_t used = before + header.size() + 1;
  header.append((kAlignment - used % kAlignment) % kAlignment, ' ').push_back('\n');

  std::string bytes(kMagic);
  bytes.append("\x01\0", 2);
  bytes.push_back(static_cast<char>(header.size() & 0xFF));
  bytes.push_back(static_cast<char>(header.size() >> 8));
  bytes += header;
  const auto append = [&](auto value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes.append(raw, sizeof value);
  };
  for (const double value : values) {
    if (single_precision) {
      append(static_cast<float>(value));
    } else {
      append(value);
    }
  }
  return bytes;
}

}  // namespace silc
