// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/policy_jacobians.h"

#include "silc/base/check.h"

namespace silc {

void SumFrames(const std::vector<Eigen::MatrixXd>& blocks, Eigen::Ref<Eigen::MatrixXd> sum) {
  if (blocks.empty()) {
    sum.setZero();
    return;
  }
  SILC_CHECK(blocks[0].rows() == sum.rows() && blocks[0].cols() == sum.cols());
  sum = blocks[0];
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    SILC_CHECK(blocks[i].rows() == sum.rows() && blocks[i].cols() == sum.cols());
    sum += blocks[i];
  }
}

}  // namespace silc
