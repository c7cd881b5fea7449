// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Values of more channels than one program of an attention kernel can sum in registers (gated attention units have one
// head of 1,536 and more). Where a kernel's result has these channels, they are split over the grid, and each program
// computes the scores again for its part; where it only contracts them, a loop takes them piece by piece.
#pragma once

#include "compiler/Conversion/AttnToTile/Patterns/Attend.h"

namespace weft {

/// The split of a kernel whose results have the values' channels, by its schedule; nothing where they are not wide.
std::optional<WideValues> splitOverGrid(const Attend &attend, attn::ScheduleAttr schedule);

/// The pieces in which another kernel contracts the channels, by its schedule; nothing where they are not wide.
std::optional<WideValues> splitInLoop(const Attend &attend, attn::ScheduleAttr schedule);

/// A schedule with `channels` of wide values where it says nothing of them.
attn::ScheduleAttr withChannels(const Attend &attend, attn::ScheduleAttr schedule, int64_t channels);

/// The part of program `standing`, with what it stores.
ChannelPart partOf(TileBuilder &b, const WideValues &wide, const Standing &standing);

} // namespace weft
