// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Verifiers of the ops in AttnMixerOps.td.
#include "dialects/Attn/IR/AttnOps.h"

using namespace mlir;
using namespace weft::attn;

LogicalResult SoftmaxOp::verify() { return success(); }
LogicalResult ToeplitzOp::verify() { return success(); }
LogicalResult ApplyOp::verify() { return success(); }
