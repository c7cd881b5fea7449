// Part of Weft. SPDX-License-Identifier: Apache-2.0
// SIMD video instructions (PTX ISA 9.7.18): vadd2 to vset4.
#include "runtime/Simulator/Machine/Decode.h"
#include "runtime/Simulator/Machine/Lanes.h"
#include "runtime/Simulator/Semantics/Video.h"

namespace weft::simulator::machine {
namespace {

namespace sem = semantics;

template <unsigned N> void runVideo(Warp &warp, const Record &record, uint32_t mask) {
  const auto &form = *static_cast<const sem::VideoForm<N> *>(record.aux);
  const uint32_t *a = warp.reg<const uint32_t>(record.op[1]), *b = warp.reg<const uint32_t>(record.op[2]);
  const uint32_t *c = warp.reg<const uint32_t>(record.op[3]);
  uint32_t results[laneCount];
  for (unsigned lane = 0; lane < laneCount; ++lane)
    results[lane] = sem::video<N>(form, a[lane], b[lane], c[lane]);
  commit(warp.reg<uint32_t>(record.op[0]), results, mask);
}

template <unsigned N, sem::VideoOp op> void bindVideo(Binding &b) {
  sem::VideoForm<N> form;
  form.op = op;
  form.dSigned = b.modifier("dt") == "s32";
  form.aSigned = b.modifier("at") == "s32";
  form.bSigned = b.modifier("bt") == "s32";
  form.saturate = b.has("sat");
  form.accumulate = b.has("add");
  if (op >= sem::VideoOp::Eq) {
    static constexpr std::string_view names[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    for (unsigned i = 0; i < 6; ++i)
      if (names[i] == b.modifier("cmp"))
        form.op = sem::VideoOp(unsigned(sem::VideoOp::Eq) + i);
  }
  for (const ptx::Operand &operand : b.instruction.operands)
    if (!operand.component.empty())
      b.unsupported("the element selector '." + std::string(operand.component) + "'");
  b.setDestination(0, b.destination(b.operand(0), ptx::Type::B32));
  for (size_t i = 1; i < 4; ++i)
    b.record.op[i] = b.source(b.operand(i), ptx::Type::B32);
  b.keep(form);
  b.record.run = runVideo<N>;
}

constexpr auto cls = InstructionClass::Integer;
#define WEFT_VIDEO "dt=u32|s32 at=u32|s32 bt=u32|s32 sat? add?"
#define WEFT_BOTH(name, op)                                                                                            \
  {name "2", WEFT_VIDEO, "*", cls, bindVideo<2, sem::VideoOp::op>}, {                                                  \
    name "4", WEFT_VIDEO, "*", cls, bindVideo<4, sem::VideoOp::op>                                                     \
  }

const Form forms[] = {
    WEFT_BOTH("vadd", Add),
    WEFT_BOTH("vsub", Sub),
    WEFT_BOTH("vavrg", Average),
    WEFT_BOTH("vabsdiff", AbsDiff),
    WEFT_BOTH("vmin", Min),
    WEFT_BOTH("vmax", Max),
    {"vset2", "at=u32|s32 bt=u32|s32 cmp=eq|ne|lt|le|gt|ge add?", "*", cls, bindVideo<2, sem::VideoOp::Eq>},
    {"vset4", "at=u32|s32 bt=u32|s32 cmp=eq|ne|lt|le|gt|ge add?", "*", cls, bindVideo<4, sem::VideoOp::Eq>},
};

} // namespace

std::span<const Form> videoForms() { return forms; }

} // namespace weft::simulator::machine
