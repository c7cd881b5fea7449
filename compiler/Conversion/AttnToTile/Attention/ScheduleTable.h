// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The schedules of attentions' kernels where nothing chose one: one table from form, element type and head sizes.
#pragma once

#include "compiler/Conversion/AttnToTile/Patterns/Attend.h"
#include "compiler/Conversion/AttnToTile/Patterns/Windows.h"

namespace weft {

/// The schedule of a forward kernel: the op's own, else the table's.
attn::ScheduleAttr forwardSchedule(attn::AttendOp op);
/// That of one with a tangent.
attn::ScheduleAttr tangentSchedule(attn::AttendTangentOp op);
/// That of the kernels of a gradient's tangent, each.
attn::ScheduleAttr gradientTangentSchedule(attn::AttendBackwardOp op);
/// Whether dk and dv each have a kernel: values are wide, or both sums fill registers of warpgroups, beside which smaller
/// tiles would have products of so few columns that the matrix units read more than they multiply.
bool makesValuesApart(attn::AttendBackwardOp op);
/// The same of dq (rows are queries), of dk with dv (rows are keys), or each by itself where `makesValuesApart`.
attn::ScheduleAttr queryGradientSchedule(attn::AttendBackwardOp op);
attn::ScheduleAttr keyGradientSchedule(attn::AttendBackwardOp op);
attn::ScheduleAttr valueGradientSchedule(attn::AttendBackwardOp op);

/// Rows of a tile of a domain that is the diagonal, by `warps` warps: a matrix instruction's for each warp; fewer where
/// a thread would hold too much of long ones.
int64_t diagonalRows(const Attend &attend, int64_t warps);

/// Whether one kernel can hold the operands and the three sums of a window of so many tokens in registers.
bool fitsOneKernel(const Attend &attend, const WindowTiling &windows);

/// Whether a convolution takes the values of an attention too.
bool isConvolved(mlir::Value values);

} // namespace weft
