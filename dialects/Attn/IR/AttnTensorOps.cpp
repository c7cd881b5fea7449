// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Verifiers of the ops in AttnTensorOps.td.
#include "dialects/Attn/IR/AttnOps.h"

using namespace mlir;
using namespace weft::attn;

LogicalResult MapOp::verify() { return success(); }
LogicalResult MapOp::verifyRegions() { return success(); }
LogicalResult ElementOp::verify() { return success(); }
LogicalResult SumOp::verify() { return success(); }
LogicalResult ConvolveOp::verify() { return success(); }
LogicalResult RopeOp::verify() { return success(); }
