// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Verifiers of the ops in AttnAttendOps.td.
#include "dialects/Attn/IR/AttnOps.h"

using namespace mlir;
using namespace weft::attn;

LogicalResult AttendOp::verify() { return success(); }
LogicalResult AttendBackwardOp::verify() { return success(); }
