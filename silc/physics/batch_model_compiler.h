// SPDX-License-Identifier: Apache-2.0
#pragma once

// What batch_model*.cc share; nobody else includes it. batch_model.cc checks the model and makes
// bodies and outputs, batch_model_joints.cc links and actuators, batch_model_contacts.cc whatever
// can touch.
#include <string>
#include <vector>

#include <Eigen/Core>
#include <Eigen/Geometry>

#include "silc/physics/batch_model.h"

namespace silc {

using Eigen::Matrix3d;
using Eigen::Vector3d;

// MuJoCo's bounds on impedances and on numbers it divides by
inline constexpr double kMinImpedance = 1e-4;
inline constexpr double kMaxImpedance = 0.9999;
inline constexpr double kMinValue = 1e-15;
inline constexpr double kMinFriction = 1e-5;

inline Vector3d ToVector(const mjtNum* v) { return {v[0], v[1], v[2]}; }
inline Matrix3d ToRotation(const mjtNum* quat_wxyz) {
  return Eigen::Quaterniond(quat_wxyz[0], quat_wxyz[1], quat_wxyz[2], quat_wxyz[3])
      .normalized()
      .toRotationMatrix();
}
using RowMatrix3d = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;
inline void StoreVector(const Vector3d& v, double* out) { Eigen::Map<Vector3d>(out, 3) = v; }
inline void StoreMatrix(const Matrix3d& R, double* out) { Eigen::Map<RowMatrix3d>(out, 3, 3) = R; }
inline Vector3d Position(const BatchBody& body) {
  return Eigen::Map<const Vector3d>(body.p_LB.data());
}
inline Matrix3d Orientation(const BatchBody& body) {
  return Eigen::Map<const RowMatrix3d>(body.R_LB.data());
}

/// One compilation: the model, what is made of it, and what stood in the way.
class BatchModelCompiler {
 public:
  BatchModelCompiler(const mjModel& model, const BatchModelOptions& options)
      : m_(model), options_(options) {}

  BatchModel Run();

 private:
  bool Disabled(int bit) const { return m_.opt.disableflags & bit; }
  std::string Name(int type, int id) const;
  void Refuse(const std::string& what, const std::string& why);
  void CheckOptions();
  // elements that act on the physics and are unknown here
  void CheckElements();
  void MakeBodies();
  int FindNamed(int type, const std::string& name, const std::string& role);
  void MakeOutputs();
  // children, runs of contacts, and which poses the step has to keep
  void LinkTree();

  // ---- links and actuators ----

  /// K, B and impedance of a row from MuJoCo's solref and solimp. (D7)
  SoftRow<double> MakeRow(const std::string& who,
                          const mjtNum* solref,
                          const mjtNum* solimp,
                          double margin);
  // links, one per joint, in MuJoCo's order
  void MakeJoints();
  bool OnlyLinkOfTree(int body) const;
  // armature, damping, spring, friction loss and limits of one joint
  void MakeJointForces(int j, LinkConstants<double>& c);
  void MakeActuators();

  // ---- contacts ----

  struct PairParameters {
    int condim;
    double friction[2], solref[mjNREF], solimp[mjNIMP], margin;
  };
  // two geoms become one contact: priority decides, else mixing
  PairParameters Mix(int g1, int g2) const;
  PairParameters FromPair(int i) const;
  /// The explicit <pair> of two geoms, or −1.
  int PairOf(int g1, int g2) const;
  /// Whether two geoms' masks meet and no <exclude> keeps their bodies apart.
  bool Match(int g1, int g2) const;
  bool Excluded(int b1, int b2) const;
  void MakeContacts();
  void AddContact(int plane, int geom, const PairParameters& pair);
  /// Whether MuJoCo looks for contacts between two geoms of moving bodies.
  bool MayTouch(int g1, int g2) const;
  /// (D12) Pairs of spheres and capsules on two moving links.
  void MakePairs();
  /// Index of the geom's shape; −1 for other than spheres and capsules.
  int ShapeOf(int geom);
  void AddPair(int g1, int g2, const PairParameters& parameters);

  const mjModel& m_;
  const BatchModelOptions& options_;
  BatchModel out_;
  std::vector<ContactConstants<double>> contacts_;
  std::vector<ShapeConstants<double>> shapes_;
  std::vector<int> shape_geoms_, refused_;
  std::vector<PairKind<double>> kinds_;
  std::vector<PairConstants<double>> pairs_;
  std::vector<std::string> problems_;
};

}  // namespace silc
