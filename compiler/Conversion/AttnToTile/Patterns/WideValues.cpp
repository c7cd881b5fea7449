// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See WideValues.h.
#include "compiler/Conversion/AttnToTile/Patterns/WideValues.h"
#include "compiler/Support/Remarks.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace weft {

std::optional<WideValues> splitOverGrid(const Attend &attend, attn::ScheduleAttr schedule) {
  int64_t channels = attend.valueSize();
  if (!attend.form.isWide)
    return std::nullopt;
  auto split =
      splitChannels(channels, schedule.getChannels()).value_or(WideValues{channels, (channels + 15) / 16 * 16, 1});
  if (split.parts > 1)
    remarks::missed(remarks::wideValues, attend.op) << remark::reason(
        "values of {0} channels are summed by {1} programs, each of which computes the scores", channels, split.parts);
  return split;
}

std::optional<WideValues> splitInLoop(const Attend &attend, attn::ScheduleAttr schedule) {
  int64_t channels = attend.valueSize(), width = schedule.getChannels();
  if (!attend.form.isWide)
    return std::nullopt;
  return WideValues{channels, width, (channels + width - 1) / width};
}

attn::ScheduleAttr withChannels(const Attend &attend, attn::ScheduleAttr schedule, int64_t channels) {
  if (schedule.getChannels() || !attend.form.isWide)
    return schedule;
  return attn::ScheduleAttr::get(schedule.getContext(), schedule.getRows(), schedule.getColumns(), schedule.getWarps(),
                                 schedule.getStages(), channels, schedule.getCluster(), schedule.getPersistent());
}

ChannelPart partOf(TileBuilder &b, const WideValues &wide, const Standing &standing) {
  Value number = standing.part ? standing.part : b.i32(0); // one part is all
  return {wide.channels, wide.chunksAt(b.mul(number, b.i32(wide.width))),
          b.compareInt(arith::CmpIPredicate::eq, number, b.i32(0))};
}

} // namespace weft
