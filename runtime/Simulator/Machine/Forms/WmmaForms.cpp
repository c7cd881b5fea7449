// Part of Weft. SPDX-License-Identifier: Apache-2.0
// wmma.load, wmma.store, wmma.mma (PTX ISA 9.7.14.4). Where a fragment's elements lie is ours to choose: Fragment.h has
// the map.
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Checks/GlobalRaces.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Machine/Forms/MatrixOperands.h"
#include "runtime/Simulator/Machine/Running/Divergence.h"
#include "runtime/Simulator/Machine/State/Lanes.h"
#include "runtime/Simulator/Semantics/Rounded.h"
#include "runtime/Support/Format.h"

namespace weft::simulator::machine {
namespace {

namespace sem = semantics;
using ptx::Space;
using ptx::Type;

/// Record::aux of a load or store. op[0] + imm: address; op[1]: leading dimension or noRef; wide: the fragment.
struct Fragment {
  Space space = Space::Generic;
  sem::Operand operand = sem::Operand::A;
  sem::MatrixShape shape{16, 16, 16};
  unsigned bits = 16; ///< of an element
  unsigned registers = 8;
  bool byColumn = false; ///< .col
  bool load = true;

  unsigned perRegister() const { return bits == 64 ? 1 : sem::perRegister(bits); }
  sem::Position position(unsigned lane, unsigned element) const {
    return operand == sem::Operand::C ? sem::accumulatorPosition(shape, lane, element)
                                      : sem::multiplicandPosition(operand, shape, bits, lane, element);
  }
  /// The dimension along which memory is contiguous, where no leading dimension is given.
  unsigned width() const {
    unsigned rows = operand == sem::Operand::B ? shape.k : shape.m,
             cols = operand == sem::Operand::A ? shape.k : shape.n;
    return byColumn ? rows : cols;
  }
  uint64_t index(unsigned lane, unsigned element, uint64_t leading) const {
    sem::Position at = position(lane, element);
    return byColumn ? at.col * leading + at.row : at.row * leading + at.col;
  }
};

/// `bytes` of a register from bit `shift` on.
struct RegisterPart {
  Ref reg;
  unsigned bytes, shift;
};

/// Reads or writes a part of a register for every lane.
void transfer(Warp &warp, const Record &record, const Fragment &fragment, uint32_t mask, const uint64_t *addresses,
              RegisterPart part) {
  auto [reg, bytes, shift] = part;
  AccessKind kind = fragment.load ? AccessKind::Read : AccessKind::Write;
  Resolved at = fragment.space == Space::Shared   ? resolveShared(warp, record, mask, addresses, bytes, kind)
                : fragment.space == Space::Global ? resolveGlobal(warp, record, mask, addresses, bytes, kind)
                                                  : resolveGeneric(warp, record, mask, addresses, bytes, kind);
  bool wide = fragment.bits == 64;
  GlobalAccesses accesses(warp, record);
  eachLane(at.mask, [&](unsigned lane) {
    uint64_t value = 0;
    if (fragment.load) {
      std::memcpy(&value, at.at[lane], bytes);
      if (wide)
        warp.reg<uint64_t>(reg)[lane] = value;
      else
        warp.reg<uint32_t>(reg)[lane] |= uint32_t(value) << shift;
      return;
    }
    value = wide ? warp.reg<uint64_t>(reg)[lane] : warp.reg<uint32_t>(reg)[lane] >> shift;
    if (tracksShared(warp) &&
        (fragment.space == Space::Shared || addresses[lane] >> windowShift == sharedWindow >> windowShift))
      shadowWrite(warp, lane, uint32_t(addresses[lane] & windowOffsetMask), bytes,
                  reinterpret_cast<const std::byte *>(&value));
    else if (addresses[lane] >> windowShift == 0 && fragment.space != Space::Shared && accesses.tracks())
      accesses.write(lane, addresses[lane], bytes, reinterpret_cast<const std::byte *>(&value));
    std::memcpy(at.at[lane], &value, bytes);
    warp.worker->changed = true;
  });
  if (!fragment.load)
    eachLane(poisonOf(warp, reg) & at.mask,
             [&](unsigned lane) { storeUnwritten(warp, lane, reg, at.at[lane], bytes, (1u << bytes) - 1); });
  if (fragment.load && at.poison)
    eachLane(at.poison, [&](unsigned lane) {
      poisonRegister(warp, reg, 1u << lane,
                     originAt(warp, at.at[lane], bytes, unwrittenBytes(warp, at.at[lane], bytes)));
    });
}

void runFragment(Warp &warp, const Record &record, uint32_t mask) {
  if (!gather(warp, mask, warp.live))
    return;
  const auto &fragment = *static_cast<const Fragment *>(record.aux);
  LaneAddresses base(warp, record, record.op[0], record.wideAddress);
  unsigned per = fragment.perRegister();
  for (unsigned reg = 0; reg < fragment.registers; ++reg) {
    Ref ref = record.wide[reg];
    if (fragment.load && fragment.bits < 64)
      eachLane(mask, [&](unsigned lane) { warp.reg<uint32_t>(ref)[lane] = 0; });
    auto leading = [&](unsigned lane) {
      return record.op[1] == noRef ? uint64_t(fragment.width())
                                   : uint64_t(warp.reg<const uint32_t>(record.op[1])[lane]);
    };
    // A register whose elements are neighbours in memory goes as one access.
    uint64_t ld = leading(firstLane(mask));
    bool together = per > 1;
    for (unsigned i = 1; i < per && together; ++i)
      together = fragment.index(0, reg * per + i, ld) == fragment.index(0, reg * per, ld) + i;
    unsigned pieces = together ? 1 : per,
             bytes = together || per == 1 ? std::max(4u, fragment.bits / 8) : fragment.bits / 8;
    for (unsigned piece = 0; piece < pieces; ++piece) {
      uint64_t addresses[laneCount];
      for (unsigned lane = 0; lane < laneCount; ++lane)
        addresses[lane] = base.at[lane] + fragment.index(lane, reg * per + piece, leading(lane)) * fragment.bits / 8;
      transfer(warp, record, fragment, mask, addresses, {ref, bytes, piece * fragment.bits});
    }
  }
}

void bindFragment(Binding &b, bool load) {
  Fragment fragment;
  fragment.load = load;
  std::string_view which = b.modifier("which"), space = b.modifier("space");
  fragment.operand = which == "a" ? sem::Operand::A : which == "b" ? sem::Operand::B : sem::Operand::C;
  fragment.shape = shapeNamed(b.modifier("shape"));
  fragment.byColumn = b.modifier("layout") == "col";
  fragment.space = space.starts_with("shared") ? Space::Shared : space == "global" ? Space::Global : Space::Generic;
  Type type = b.type();
  if (fragment.operand == sem::Operand::C) {
    sem::AccumulatorType accumulator = accumulatorType(type);
    fragment.bits = sem::bitsOf(accumulator);
    fragment.registers = sem::accumulatorRegisters(fragment.shape, accumulator);
  } else {
    fragment.bits = sem::bitsOf(matrixType(type));
    fragment.registers = sem::wmmaRegisters(fragment.operand, fragment.shape, matrixType(type));
    if (fragment.bits < 8 && fragment.byColumn != (fragment.operand == sem::Operand::B))
      b.unsupported(format("'{}'", b.instruction.spelling()));
  }
  const ptx::Operand &registers = b.operand(load ? 0 : 1), &memory = b.operand(load ? 1 : 0);
  std::vector<Ref> refs;
  appendRegisters(b, registers, fragment.registers, fragment.bits == 64 ? Type::F64 : Type::B32, load, refs);
  b.setWide(std::move(refs), load ? fragment.registers : 0);
  AddressOperand address = b.decoder.address(b.frame, memory);
  b.record.op[0] = address.base;
  b.record.imm = address.offset;
  b.record.wideAddress = address.wide;
  b.site.addressOperand = 0;
  if (b.operandCount() > 2)
    b.record.op[1] = b.source(b.operand(2), Type::U32);
  b.decoder.noteAccess(fragment.space, std::min(4u, std::max(1u, fragment.bits / 8)));
  b.keep(fragment);
  b.record.run = runFragment;
}
void bindLoad(Binding &b) { bindFragment(b, true); }
void bindStore(Binding &b) { bindFragment(b, false); }

/// f64 in a direction: fused multiply-adds in ascending k that start from C, as Matrix.h has them.
template <sem::Rounding mode>
void multiplyRounded(const sem::MatrixProduct &product, const void *const *a, const void *const *b,
                     const void *const *c, void *const *d) {
  double left[8][4], right[4][8];
  for (unsigned lane = 0; lane < laneCount; ++lane) {
    const sem::Position inA = sem::multiplicandPosition(sem::Operand::A, product.shape, 64, lane, 0),
                        inB = sem::multiplicandPosition(sem::Operand::B, product.shape, 64, lane, 0);
    left[inA.row][inA.col] = static_cast<const double *>(a[0])[lane];
    right[inB.row][inB.col] = static_cast<const double *>(b[0])[lane];
  }
  for (unsigned i = 0; i < 2; ++i)
    for (unsigned lane = 0; lane < laneCount; ++lane) {
      const sem::Position at = sem::accumulatorPosition(product.shape, lane, i);
      double sum = static_cast<const double *>(c[i])[lane];
      for (unsigned k = 0; k < 4; ++k)
        sum = sem::fmaRounded(mode, left[at.row][k], right[k][at.col], sum);
      static_cast<double *>(d[i])[lane] = sum;
    }
}

void bindRoundingOf(Binding &b, Product &product) {
  const std::string_view direction = b.modifier("rnd");
  if (direction.empty() || direction == "rn")
    return;
  if (product.product.a != sem::MatrixType::F64)
    b.fail(format("expected '.{}' of f64 only", direction));
  product.multiply = direction == "rz"   ? multiplyRounded<sem::Rounding::Zero>
                     : direction == "rm" ? multiplyRounded<sem::Rounding::Down>
                                         : multiplyRounded<sem::Rounding::Up>;
}

void bindMultiply(Binding &b) {
  Product p;
  auto typeOr = [&](std::string_view slot, Type otherwise) { return b.has(slot) ? b.type(slot) : otherwise; };
  p.product.shape = shapeNamed(b.modifier("shape"));
  p.product.a = matrixType(typeOr("a", Type::F16));
  p.product.b = matrixType(typeOr("b", Type::F16));
  p.product.d = accumulatorType(b.type("d"));
  p.product.c = accumulatorType(b.type("c"));
  p.product.saturate = b.has("satfinite");
  p.product.bits = b.modifier("bitop") == "and" ? sem::BitOperation::AndPopc : sem::BitOperation::XorPopc;
  if (!sem::isWmmaProduct(p.product))
    b.unsupported(format("'{}'", b.instruction.spelling()));
  p.aCount = sem::wmmaRegisters(sem::Operand::A, p.product.shape, p.product.a);
  p.bCount = sem::wmmaRegisters(sem::Operand::B, p.product.shape, p.product.b);
  p.cCount = sem::accumulatorRegisters(p.product.shape, p.product.c);
  p.dCount = sem::accumulatorRegisters(p.product.shape, p.product.d);
  p.macs = uint64_t(p.product.shape.m) * p.product.shape.n * p.product.shape.k;
  bindRoundingOf(b, p);
  bindProduct(b, p);
}

#define WEFT_SHAPES "shape=m16n16k16|m8n32k16|m32n8k16|m16n16k8|m8n8k4|m8n8k32|m8n8k128"
#define WEFT_PLACE "space=global|shared|shared::cta?"
constexpr auto memory = InstructionClass::MatrixLoad;
constexpr auto product = InstructionClass::Matrix;

const Form forms[] = {
    {"wmma",
     "load which=a|b sync aligned layout=row|col " WEFT_SHAPES " " WEFT_PLACE " type=f16|bf16|tf32|f64|s8|u8|s4|u4|b1",
     "*", memory, bindLoad},
    {"wmma", "load which=c sync aligned layout=row|col " WEFT_SHAPES " " WEFT_PLACE " type=f16|f32|f64|s32", "*",
     memory, bindLoad},
    {"wmma", "store which=d sync aligned layout=row|col " WEFT_SHAPES " " WEFT_PLACE " type=f16|f32|f64|s32", "*",
     memory, bindStore},
    {"wmma", "mma sync aligned alayout=row|col blayout=row|col " WEFT_SHAPES " d=f16|f32 c=f16|f32 satfinite?", "*",
     product, bindMultiply},
    {"wmma",
     "mma sync aligned alayout=row|col blayout=row|col " WEFT_SHAPES
     " rnd=rn|rz|rm|rp? d=s32|f32|f64 a=bf16|tf32|f64|s8|u8|s4|u4 b=bf16|tf32|f64|s8|u8|s4|u4 c=s32|f32|f64 satfinite?",
     "*", product, bindMultiply},
    {"wmma", "mma bitop=xor|and popc sync aligned alayout=row blayout=col " WEFT_SHAPES " d=s32 a=b1 b=b1 c=s32", "*",
     product, bindMultiply},
};

} // namespace

std::span<const Form> wmmaForms() { return forms; }

} // namespace weft::simulator::machine
