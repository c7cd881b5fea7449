// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Video instructions: scalar ones on bytes, halfwords and words (PTX ISA 9.7.17), SIMD ones (9.7.18).
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Machine/State/Lanes.h"
#include "runtime/Simulator/Semantics/ScalarVideo.h"
#include "runtime/Simulator/Semantics/Video.h"
#include "runtime/Support/Format.h"

#include <algorithm>

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

constexpr std::string_view comparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"};

/// `op`; for the first of the comparisons, the one that the instruction names.
sem::VideoOp named(const Binding &b, sem::VideoOp op) {
  if (op == sem::VideoOp::Eq)
    for (unsigned i = 0; i < 6; ++i)
      if (comparisons[i] == b.modifier("cmp"))
        return sem::VideoOp(unsigned(op) + i);
  return op;
}

/// The digits of an element selector, the lowest element's first: `.h32` gives 2, 3. Empty where there is none.
template <unsigned N> std::vector<uint8_t> selectorOf(Binding &b, const ptx::Operand &operand, unsigned below) {
  std::vector<uint8_t> digits;
  const std::string_view text = operand.component;
  if (text.empty())
    return digits;
  bool good = text[0] == (N == 2 ? 'h' : 'b') && text.size() > 1 && text.size() <= N + 1;
  for (size_t i = text.size(); i-- > 1;) {
    good &= text[i] >= '0' && unsigned(text[i] - '0') < below;
    digits.push_back(uint8_t(text[i] - '0'));
  }
  if (!good)
    b.fail(operand, format("expected an element selector, '{}' and up to {} digits below {}, but got '.{}'",
                           N == 2 ? ".h" : ".b", N, below, text));
  return digits;
}

template <unsigned N> void select(Binding &b, const ptx::Operand &operand, std::array<uint8_t, N> &to) {
  const std::vector<uint8_t> digits = selectorOf<N>(b, operand, 2 * N);
  if (!digits.empty() && digits.size() != N)
    b.fail(operand, format("expected a selector of {} elements, but got '.{}'", N, operand.component));
  std::copy(digits.begin(), digits.end(), to.begin());
}

template <unsigned N, sem::VideoOp op> void bindVideo(Binding &b) {
  sem::VideoForm<N> form;
  form.op = named(b, op);
  form.dSigned = b.modifier("dt") == "s32";
  form.aSigned = b.modifier("at") == "s32";
  form.bSigned = b.modifier("bt") == "s32";
  form.saturate = b.has("sat");
  form.accumulate = b.has("add");
  if (b.operandCount() != 4)
    b.fail(format("expected 4 operands, but got {}", b.operandCount()));
  if (const std::vector<uint8_t> mask = selectorOf<N>(b, b.operand(0), N); !mask.empty()) {
    form.mask = 0;
    for (uint8_t element : mask)
      form.mask |= uint8_t(1u << element);
  }
  select<N>(b, b.operand(1), form.aSelect);
  select<N>(b, b.operand(2), form.bSelect);
  b.setDestination(0, b.destination(b.operand(0), ptx::Type::U32));
  for (size_t i = 1; i < 4; ++i)
    b.record.op[i] = b.source(b.operand(i), ptx::Type::U32);
  b.keep(form);
  b.record.run = runVideo<N>;
}

void runScalarVideo(Warp &warp, const Record &record, uint32_t mask) {
  const auto &form = *static_cast<const sem::ScalarVideoForm *>(record.aux);
  const uint32_t *a = warp.reg<const uint32_t>(record.op[1]), *b = warp.reg<const uint32_t>(record.op[2]);
  const uint32_t *c = warp.reg<const uint32_t>(record.op[3]);
  uint32_t results[laneCount];
  for (unsigned lane = 0; lane < laneCount; ++lane)
    results[lane] = sem::scalarVideo(form, a[lane], b[lane], c[lane]);
  commit(warp.reg<uint32_t>(record.op[0]), results, mask);
}

/// `.b0` to `.b3`, `.h0`, `.h1`, or the whole word.
sem::WordPart wordPart(Binding &b, const ptx::Operand &operand) {
  const std::string_view text = operand.component;
  if (text.empty())
    return {};
  const unsigned bits = text[0] == 'b' ? 8 : 16, index = text.size() == 2 ? unsigned(text[1] - '0') : 4;
  if ((text[0] != 'b' && text[0] != 'h') || index >= 32 / bits)
    b.fail(operand, format("expected '.b0' to '.b3', '.h0' or '.h1', but got '.{}'", text));
  return {uint8_t(bits * index), uint8_t(bits)};
}

sem::VideoSecond secondOf(Binding &b, bool merges) {
  const std::string_view word = b.modifier("second");
  if (merges && !word.empty())
    b.fail(format("expected a part of the destination or '.{}', but got both", word));
  return merges          ? sem::VideoSecond::Merge
         : word == "add" ? sem::VideoSecond::Add
         : word == "min" ? sem::VideoSecond::Min
         : word == "max" ? sem::VideoSecond::Max
                         : sem::VideoSecond::None;
}

/// A source that may be negated.
Ref negatedSource(Binding &b, ptx::Operand operand, bool &negated) {
  negated = operand.minus;
  operand.minus = false;
  return b.source(operand, ptx::Type::U32);
}

template <sem::VideoOp op> void bindScalarVideo(Binding &b) {
  constexpr bool mad = op == sem::VideoOp::Mad;
  sem::ScalarVideoForm form;
  form.op = named(b, op);
  form.dSigned = b.modifier("dt") == "s32";
  form.aSigned = b.modifier("at") == "s32";
  form.bSigned = b.modifier("bt") == "s32";
  form.saturate = b.has("sat");
  form.wraps = b.modifier("mode") == "wrap";
  form.plusOne = b.has("po");
  form.scale = b.modifier("scale") == "shr7" ? 7 : b.modifier("scale") == "shr15" ? 15 : 0;
  form.d = wordPart(b, b.operand(0));
  form.a = wordPart(b, b.operand(1));
  form.b = wordPart(b, b.operand(2));
  form.second = secondOf(b, !mad && !b.operand(0).component.empty());
  const size_t operands = mad || form.second != sem::VideoSecond::None ? 4 : 3;
  // ptxas takes a fourth operand that no second operation uses, and forgets it.
  if (b.operandCount() != operands && b.operandCount() != 4)
    b.fail(format("expected {} operands, but got {}", operands, b.operandCount()));
  b.setDestination(0, b.destination(b.operand(0), ptx::Type::U32));
  b.record.op[3] = b.constant32(0);
  if constexpr (mad) {
    bool minusA, minusB;
    b.record.op[1] = negatedSource(b, b.operand(1), minusA);
    b.record.op[2] = negatedSource(b, b.operand(2), minusB);
    b.record.op[3] = negatedSource(b, b.operand(3), form.negateAddend);
    form.negateProduct = minusA != minusB;
    if (int(form.plusOne) + int(form.negateProduct) + int(form.negateAddend) > 1)
      b.fail("expected one of '.po', a negated factor and a negated addend");
  } else {
    for (size_t i = 1; i < b.operandCount(); ++i) {
      const Ref value = b.source(b.operand(i), ptx::Type::U32);
      if (i < operands)
        b.record.op[i] = value;
    }
  }
  b.keep(form);
  b.record.run = runScalarVideo;
}

constexpr auto cls = InstructionClass::Integer;
#define WEFT_TYPES "dt=u32|s32 at=u32|s32 bt=u32|s32"
#define WEFT_VIDEO WEFT_TYPES " sat? add?"
#define WEFT_BOTH(name, op)                                                                                            \
  {name "2", WEFT_VIDEO, "**", cls, bindVideo<2, sem::VideoOp::op>}, {                                                 \
    name "4", WEFT_VIDEO, "**", cls, bindVideo<4, sem::VideoOp::op>                                                    \
  }

#define WEFT_SCALAR(name, op)                                                                                          \
  {name, WEFT_TYPES " sat? second=add|min|max?", "**", cls, bindScalarVideo<sem::VideoOp::op>}
#define WEFT_SHIFT(name, op)                                                                                           \
  {name, WEFT_TYPES " sat? mode=clamp|wrap second=add|min|max?", "**", cls, bindScalarVideo<sem::VideoOp::op>}

const Form forms[] = {
    WEFT_BOTH("vadd", Add),
    WEFT_BOTH("vsub", Sub),
    WEFT_BOTH("vavrg", Average),
    WEFT_BOTH("vabsdiff", AbsDiff),
    WEFT_BOTH("vmin", Min),
    WEFT_BOTH("vmax", Max),
    {"vset2", "at=u32|s32 bt=u32|s32 cmp=eq|ne|lt|le|gt|ge add?", "**", cls, bindVideo<2, sem::VideoOp::Eq>},
    {"vset4", "at=u32|s32 bt=u32|s32 cmp=eq|ne|lt|le|gt|ge add?", "**", cls, bindVideo<4, sem::VideoOp::Eq>},
    WEFT_SCALAR("vadd", Add),
    WEFT_SCALAR("vsub", Sub),
    WEFT_SCALAR("vabsdiff", AbsDiff),
    WEFT_SCALAR("vmin", Min),
    WEFT_SCALAR("vmax", Max),
    WEFT_SHIFT("vshl", Shl),
    WEFT_SHIFT("vshr", Shr),
    {"vmad", WEFT_TYPES " po? sat? scale=shr7|shr15?", "**", cls, bindScalarVideo<sem::VideoOp::Mad>},
    {"vset", "at=u32|s32 bt=u32|s32 cmp=eq|ne|lt|le|gt|ge second=add|min|max?", "**", cls,
     bindScalarVideo<sem::VideoOp::Eq>},
};

} // namespace

std::span<const Form> videoForms() { return forms; }

} // namespace weft::simulator::machine
