// Part of Weft. SPDX-License-Identifier: Apache-2.0
// ldmatrix, stmatrix, movmatrix, mma.sync (PTX ISA 9.7.14).
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Decoding/OperandRules.h"
#include "runtime/Simulator/Machine/Forms/Engines/Requirements.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Machine/Forms/MatrixOperands.h"
#include "runtime/Simulator/Machine/Running/Divergence.h"
#include "runtime/Simulator/Machine/State/Lanes.h"
#include "runtime/Simulator/Semantics/Matrix.h"
#include "runtime/Support/Format.h"

namespace weft::simulator::machine {
namespace sem = semantics;
using ptx::Type;

ProductLanes lanesOf(Warp &warp, const Record &record) {
  const auto &p = *static_cast<const Product *>(record.aux);
  ProductLanes lanes;
  const Ref *refs = record.wide;
  for (unsigned i = 0; i < p.dCount; ++i)
    lanes.d[i] = warp.reg<std::byte>(*refs++);
  for (unsigned i = 0; i < p.aCount; ++i)
    lanes.a[i] = warp.reg<std::byte>(*refs++);
  for (unsigned i = 0; i < p.bCount; ++i)
    lanes.b[i] = warp.reg<std::byte>(*refs++);
  for (unsigned i = 0; i < p.cCount; ++i)
    lanes.c[i] = warp.reg<std::byte>(*refs++);
  return lanes;
}

void countProduct(Warp &warp, const Product &product) {
  warp.worker->counters.mmaMacs += product.macs;
  warp.worker->costs[warp.here()].macs += product.macs;
}

void runProduct(Warp &warp, const Record &record, uint32_t mask) {
  if (!gather(warp, mask, warp.live))
    return;
  const auto &p = *static_cast<const Product *>(record.aux);
  const ProductLanes lanes = lanesOf(warp, record);
  if (p.quadPairs)
    sem::multiplyQuadPairs({p.aByColumn, p.bByRow, p.product.c, p.product.d}, lanes.a, lanes.b, lanes.c, lanes.d);
  else
    p.multiply(p.product, lanes.a, lanes.b, lanes.c, lanes.d);
  countProduct(warp, p);
}

sem::MatrixType matrixType(Type type) {
  switch (type) {
  case Type::BF16:
    return sem::MatrixType::BF16;
  case Type::TF32:
    return sem::MatrixType::TF32;
  case Type::F64:
    return sem::MatrixType::F64;
  case Type::S8:
    return sem::MatrixType::S8;
  case Type::U8:
    return sem::MatrixType::U8;
  case Type::S4:
    return sem::MatrixType::S4;
  case Type::U4:
    return sem::MatrixType::U4;
  case Type::B1:
    return sem::MatrixType::B1;
  case Type::E4M3:
    return sem::MatrixType::E4M3;
  case Type::E5M2:
    return sem::MatrixType::E5M2;
  default:
    return sem::MatrixType::F16;
  }
}
sem::AccumulatorType accumulatorType(Type type) {
  return type == Type::F16   ? sem::AccumulatorType::F16
         : type == Type::F64 ? sem::AccumulatorType::F64
         : type == Type::S32 ? sem::AccumulatorType::S32
                             : sem::AccumulatorType::F32;
}

sem::MatrixShape shapeNamed(std::string_view text) {
  uint16_t numbers[3] = {};
  int at = -1;
  for (char c : text) {
    if (c >= '0' && c <= '9')
      numbers[at] = uint16_t(numbers[at] * 10 + (c - '0'));
    else
      ++at;
  }
  return {numbers[0], numbers[1], numbers[2]};
}

void appendRegisters(Binding &b, const ptx::Operand &operand, size_t count, Type type, bool destination,
                     std::vector<Ref> &refs) {
  std::vector<const ptx::Operand *> elements;
  if (operand.kind == ptx::OperandKind::Vector)
    for (const ptx::Operand &element : operand.elements)
      elements.push_back(&element);
  else
    elements.push_back(&operand);
  if (elements.size() != count)
    b.fail(operand, format("expected {} registers, but got {}", count, elements.size()));
  for (const ptx::Operand *element : elements)
    refs.push_back(destination ? b.destinationElement(*element, type) : b.sourceElement(*element, type));
}

void bindProduct(Binding &b, const Product &p) {
  if (b.operandCount() != 4)
    b.fail("expected the four operands d, a, b, c");
  bool wide = p.product.a == sem::MatrixType::F64;
  Type type = wide ? Type::F64 : Type::B32;
  std::vector<Ref> refs;
  appendRegisters(b, b.operand(0), p.dCount, type, true, refs);
  appendRegisters(b, b.operand(1), p.aCount, type, false, refs);
  appendRegisters(b, b.operand(2), p.bCount, type, false, refs);
  appendRegisters(b, b.operand(3), p.cCount, type, false, refs);
  b.setWide(std::move(refs), p.dCount);
  b.keep(p);
  b.record.run = runProduct;
}

namespace {

/// A row that a lane may not read.
alignas(16) std::byte noRow[16];

/// Marks what ldmatrix took from bytes that nothing wrote: a register has the elements of one matrix.
void poisonMatrix(Warp &warp, const Record &record, const Resolved &from, unsigned matrix, uint32_t mask) {
  BytePoison bytes{};
  uint32_t origins[laneCount] = {};
  for (unsigned row = 0; row < 8; ++row) {
    const unsigned lane = 8 * matrix + row;
    const uint32_t unwritten = from.poison >> lane & 1 ? unwrittenBytes(warp, from.at[lane], 16) : 0;
    for (unsigned i = 0; i < 16 && unwritten; ++i) {
      const LaneByte to = matrixByte(row, i, record.target != 0);
      if (!(unwritten >> i & mask >> to.lane & 1))
        continue;
      bytes[to.byte] |= 1u << to.lane;
      origins[to.lane] = originAt(warp, from.at[lane], 16, 1u << i);
    }
  }
  poisonBytes(warp, record.wide[matrix], bytes);
  for (unsigned lane = 0; lane < laneCount; ++lane)
    if (origins[lane])
      setOrigin(warp, record.wide[matrix], 1u << lane, origins[lane]);
}

/// ldmatrix: wide[i] = matrix i. op[0] + imm: row addresses. Record::vector: matrices; Record::target: transposed.
void runLoadMatrix(Warp &warp, const Record &record, uint32_t mask) {
  if (!gather(warp, mask, warp.live))
    return;
  LaneAddresses addresses(warp, record, record.op[0], record.wideAddress);
  unsigned matrices = record.vector;
  uint32_t rowLanes = matrices == 4 ? ~0u : (1u << 8 * matrices) - 1;
  Resolved from = resolveShared(warp, record, mask & rowLanes, addresses.at, 16, AccessKind::Read);
  for (unsigned matrix = 0; matrix < matrices; ++matrix) {
    const std::byte *rows[8];
    for (unsigned row = 0; row < 8; ++row)
      rows[row] = (from.mask >> (8 * matrix + row) & 1) ? from.at[8 * matrix + row] : noRow;
    uint32_t results[laneCount];
    sem::loadMatrix(rows, record.target != 0, results);
    commit(warp.reg<uint32_t>(record.wide[matrix]), results, mask);
    poisonMatrix(warp, record, from, matrix, mask);
  }
}

/// Marks what stmatrix wrote to a matrix's rows from registers that nothing wrote.
void storeUnwrittenMatrix(Warp &warp, const Record &record, const Resolved &to, unsigned matrix) {
  const BytePoison bytes = bytePoisonOf(warp, record.wide[matrix]);
  for (unsigned row = 0; row < 8; ++row)
    for (unsigned i = 0; i < 16; ++i) {
      const LaneByte from = matrixByte(row, i, record.target != 0);
      if ((bytes[from.byte] >> from.lane & 1) && (to.mask >> (8 * matrix + row) & 1))
        storeUnwritten(warp, from.lane, record.wide[matrix], to.at[8 * matrix + row], 16, 1u << i);
    }
}

void runStoreMatrix(Warp &warp, const Record &record, uint32_t mask) {
  if (!gather(warp, mask, warp.live))
    return;
  LaneAddresses addresses(warp, record, record.op[0], record.wideAddress);
  unsigned matrices = record.vector;
  uint32_t rowLanes = matrices == 4 ? ~0u : (1u << 8 * matrices) - 1;
  Resolved to = resolveShared(warp, record, mask & rowLanes, addresses.at, 16, AccessKind::Write);
  for (unsigned matrix = 0; matrix < matrices; ++matrix) {
    std::byte buffer[8][16];
    std::byte *rows[8];
    for (unsigned row = 0; row < 8; ++row)
      rows[row] = buffer[row];
    sem::storeMatrix(warp.reg<const uint32_t>(record.wide[matrix]), record.target != 0, rows);
    for (unsigned row = 0; row < 8; ++row) {
      unsigned lane = 8 * matrix + row;
      if (!(to.mask >> lane & 1))
        continue;
      if (tracksShared(warp))
        shadowWrite(warp, lane, uint32_t(addresses.at[lane] & windowOffsetMask), 16, buffer[row]);
      std::memcpy(to.at[lane], buffer[row], 16);
      warp.worker->changed = true;
    }
    if (poisonOf(warp, record.wide[matrix]))
      storeUnwrittenMatrix(warp, record, to, matrix);
  }
}

void runMoveMatrix(Warp &warp, const Record &record, uint32_t mask) {
  if (!gather(warp, mask, warp.live))
    return;
  uint32_t results[laneCount];
  sem::transposeMatrix(warp.reg<const uint32_t>(record.op[1]), results);
  commit(warp.reg<uint32_t>(record.op[0]), results, mask);
}

void bindMma(Binding &b) {
  Product p;
  p.product.shape = shapeNamed(b.modifier("shape"));
  p.product.a = matrixType(b.type("a"));
  p.product.b = matrixType(b.type("b"));
  p.product.d = accumulatorType(b.type("d"));
  p.product.c = accumulatorType(b.type("c"));
  p.product.saturate = b.has("satfinite");
  p.product.bits = b.modifier("bitop") == "and" ? sem::BitOperation::AndPopc : sem::BitOperation::XorPopc;
  const auto &shape = p.product.shape;
  p.macs = uint64_t(shape.m) * shape.n * shape.k;
  p.aByColumn = b.modifier("alayout") == "col";
  p.bByRow = b.modifier("blayout") == "row";
  p.quadPairs = shape == sem::MatrixShape{8, 8, 4} && p.product.a == sem::MatrixType::F16;
  if (p.quadPairs) {
    p.macs *= 4;
    p.aCount = p.bCount = 2;
    p.dCount = p.product.d == sem::AccumulatorType::F16 ? 4 : 8;
    p.cCount = p.product.c == sem::AccumulatorType::F16 ? 4 : 8;
  } else {
    if (!sem::isMmaProduct(p.product) || p.aByColumn || p.bByRow)
      b.unsupported(format("'{}'", b.instruction.spelling()));
    if (sem::isFloat8(p.product.a)) {
      needsTarget(b, 89);
      p.multiply = targetNumber(b) == 89 ? sem::multiplyHalves : sem::multiplyWidened;
    }
    unsigned bits = sem::bitsOf(p.product.a);
    p.aCount = sem::multiplicandRegisters(sem::Operand::A, shape, bits);
    p.bCount = sem::multiplicandRegisters(sem::Operand::B, shape, bits);
    p.cCount = sem::accumulatorRegisters(shape, p.product.c);
    p.dCount = sem::accumulatorRegisters(shape, p.product.d);
  }
  bindProduct(b, p);
}

void bindMatrixAccess(Binding &b, bool load) {
  std::string_view count = b.modifier("num");
  unsigned matrices = unsigned(count[1] - '0');
  const ptx::Operand &registers = b.operand(load ? 0 : 1), &memory = b.operand(load ? 1 : 0);
  const AddressOperand address = addressIn(b, memory, ptx::Space::Shared);
  std::vector<Ref> refs;
  appendRegisters(b, registers, matrices, Type::B32, load, refs);
  b.setWide(std::move(refs), load ? matrices : 0);
  b.record.op[0] = address.base;
  b.record.imm = address.offset;
  b.record.wideAddress = address.wide;
  b.record.vector = uint8_t(matrices);
  b.record.target = b.has("trans");
  b.site.addressOperand = 0;
  b.record.run = load ? runLoadMatrix : runStoreMatrix;
}
void bindLoadMatrix(Binding &b) { bindMatrixAccess(b, true); }
void bindStoreMatrix(Binding &b) { bindMatrixAccess(b, false); }
void bindMoveMatrix(Binding &b) { b.record.run = runMoveMatrix; }

constexpr auto cls = InstructionClass::Matrix;
#define WEFT_LAYOUTS "alayout=row|col blayout=row|col"

const Form forms[] = {
    {"ldmatrix", "sync aligned shape=m8n8 num=x1|x2|x4 trans? space=shared|shared::cta? b16", "*",
     InstructionClass::MatrixLoad, bindLoadMatrix},
    {"stmatrix", "sync aligned shape=m8n8 num=x1|x2|x4 trans? space=shared|shared::cta? b16", "*",
     InstructionClass::MatrixLoad, bindStoreMatrix},
    {"movmatrix", "sync aligned m8n8 trans b16", "d:b32 s:b32", cls, bindMoveMatrix},
    {"mma", "sync aligned shape=m16n8k16|m16n8k8|m8n8k4 " WEFT_LAYOUTS " d=f16|f32 a=f16 b=f16 c=f16|f32", "*", cls,
     bindMma},
    {"mma", "sync aligned shape=m16n8k16|m16n8k8 " WEFT_LAYOUTS " d=f32 a=bf16 b=bf16 c=f32", "*", cls, bindMma},
    {"mma", "sync aligned shape=m16n8k16|m16n8k32 " WEFT_LAYOUTS " d=f16|f32 a=e4m3|e5m2 b=e4m3|e5m2 c=f16|f32", "*",
     cls, bindMma},
    {"mma", "sync aligned shape=m16n8k4|m16n8k8 " WEFT_LAYOUTS " d=f32 a=tf32 b=tf32 c=f32", "*", cls, bindMma},
    {"mma", "sync aligned shape=m8n8k4|m16n8k4|m16n8k8|m16n8k16 " WEFT_LAYOUTS " d=f64 a=f64 b=f64 c=f64", "*", cls,
     bindMma},
    {"mma", "sync aligned shape=m8n8k16|m16n8k16|m16n8k32 " WEFT_LAYOUTS " satfinite? d=s32 a=u8|s8 b=u8|s8 c=s32", "*",
     cls, bindMma},
    {"mma", "sync aligned shape=m8n8k32|m16n8k32|m16n8k64 " WEFT_LAYOUTS " satfinite? d=s32 a=u4|s4 b=u4|s4 c=s32", "*",
     cls, bindMma},
    {"mma", "sync aligned shape=m8n8k128|m16n8k128|m16n8k256 " WEFT_LAYOUTS " d=s32 a=b1 b=b1 c=s32 bitop=xor|and popc",
     "*", cls, bindMma},
};

} // namespace

std::span<const Form> matrixForms() { return forms; }

} // namespace weft::simulator::machine
