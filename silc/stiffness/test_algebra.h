// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <complex>
#include <concepts>
#include <type_traits>

/// Products, sums and multiples of matrices, computed at once and by plain loops, for tests.
///
/// Eigen gives every expression a type of its own, and a test with forty formulas spends half a
/// minute of the compiler on loops that run for microseconds. After
///
///     using namespace test::eager;
///
/// the same formulas, unchanged, have MatrixXd as the type of every intermediate result and share
/// the three loops in test_algebra.cc. They share no code with the products of the library. What
/// is of fixed size, diagonal or triangular stays Eigen's.
namespace silc::test::eager {

using Eigen::Index;

/// Where the entries of a matrix lie: (i, j) at data[i * row_step + j * col_step].
template <typename Scalar>
struct Entries {
  const Scalar* data;
  Index rows, cols, row_step, col_step;
};

void Multiply(const Entries<double>& a, const Entries<double>& b, double* out);
void Multiply(const Entries<std::complex<double>>& a,
              const Entries<std::complex<double>>& b,
              std::complex<double>* out);
/// out = s a + t b.
void Combine(double s, const Entries<double>& a, double t, const Entries<double>& b, double* out);
void Combine(double s,
             const Entries<std::complex<double>>& a,
             double t,
             const Entries<std::complex<double>>& b,
             std::complex<double>* out);
/// out = s a.
void Scale(double s, const Entries<double>& a, double* out);
void Scale(double s, const Entries<std::complex<double>>& a, std::complex<double>* out);

/// Of double or complex entries, and not of a fixed size. A row vector is left to Eigen: its
/// products with columns are numbers.
template <typename T>
concept Operand = std::derived_from<T, Eigen::MatrixBase<T>> &&
                  (std::same_as<typename T::Scalar, double> ||
                   std::same_as<typename T::Scalar, std::complex<double>>)&&T::SizeAtCompileTime
                  == Eigen::Dynamic&& T::RowsAtCompileTime != 1;

template <typename A, typename B>
concept Operands = Operand<A> && Operand<B> && std::same_as<typename A::Scalar, typename B::Scalar>;

/// A column where the type says so, a matrix otherwise.
template <typename T>
using Plain = Eigen::
    Matrix<typename T::Scalar, Eigen::Dynamic, T::ColsAtCompileTime == 1 ? 1 : Eigen::Dynamic>;

/// The entries of an expression, which is evaluated first unless it already lies in memory.
template <typename T>
class Read {
 public:
  using Scalar = typename T::Scalar;
  explicit Read(const T& expression) : held_(expression) {}
  Entries<Scalar> entries() const {
    return {held_.data(), held_.rows(), held_.cols(), held_.rowStride(), held_.colStride()};
  }

 private:
  static constexpr bool kInMemory = Eigen::internal::has_direct_access<T>::ret;
  std::conditional_t<kInMemory, const T&, const Plain<T>> held_;
};

template <typename A, typename B>
requires Operands<A, B> Plain<B>
operator*(const A& a, const B& b) {
  eigen_assert(a.cols() == b.rows());
  const Read<A> left(a);
  const Read<B> right(b);
  Plain<B> out(a.rows(), b.cols());
  Multiply(left.entries(), right.entries(), out.data());
  return out;
}

template <typename A, typename B>
requires Operands<A, B> Plain<A>
operator+(const A& a, const B& b) {
  eigen_assert(a.rows() == b.rows() && a.cols() == b.cols());
  const Read<A> left(a);
  const Read<B> right(b);
  Plain<A> out(a.rows(), a.cols());
  Combine(1, left.entries(), 1, right.entries(), out.data());
  return out;
}

template <typename A, typename B>
requires Operands<A, B> Plain<A>
operator-(const A& a, const B& b) {
  eigen_assert(a.rows() == b.rows() && a.cols() == b.cols());
  const Read<A> left(a);
  const Read<B> right(b);
  Plain<A> out(a.rows(), a.cols());
  Combine(1, left.entries(), -1, right.entries(), out.data());
  return out;
}

template <typename S, typename A>
requires(std::is_arithmetic_v<S>&& Operand<A>) Plain<A>
operator*(const S& s, const A& a) {
  const Read<A> right(a);
  Plain<A> out(a.rows(), a.cols());
  Scale(static_cast<double>(s), right.entries(), out.data());
  return out;
}

template <typename A, typename S>
requires(std::is_arithmetic_v<S>&& Operand<A>) Plain<A>
operator*(const A& a, const S& s) { return s * a; }

template <typename A, typename S>
requires(std::is_arithmetic_v<S>&& Operand<A>) Plain<A>
operator/(const A& a, const S& s) { return (1 / static_cast<double>(s)) * a; }

template <Operand A>
Plain<A> operator-(const A& a) {
  return -1.0 * a;
}

}  // namespace silc::test::eager
