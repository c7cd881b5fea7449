// Part of Weft. SPDX-License-Identifier: Apache-2.0
// mma.sp and mma.sp::ordered_metadata (PTX ISA 9.7.14.6).
#include "runtime/Simulator/Machine/Checks/SparseMetadata.h"
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Forms/Engines/Requirements.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Machine/Forms/MatrixOperands.h"
#include "runtime/Simulator/Machine/Running/Divergence.h"
#include "runtime/Simulator/Machine/State/Lanes.h"
#include "runtime/Support/Format.h"

namespace weft::simulator::machine {

namespace sem = semantics;
using ptx::Type;

unsigned sparsitySelector(Binding &b, const ptx::Operand &operand, const sem::MatrixProduct &product) {
  const unsigned selectors = sem::selectorsOf(product);
  if (operand.kind == ptx::OperandKind::Integer && operand.bits < selectors)
    return unsigned(operand.bits);
  const char *holders = selectors == 4   ? "0 to 3, the one of four threads that holds the metadata"
                        : selectors == 2 ? "0 or 1, the two of four threads that hold the metadata"
                                         : "0, as all threads hold metadata";
  b.fail(operand, format("expected a sparsity selector of {}", holders));
}

namespace {

void runSparseProduct(Warp &warp, const Record &record, uint32_t mask) {
  if (!gather(warp, mask, warp.live))
    return;
  const auto &p = *static_cast<const Product *>(record.aux);
  const Ref metadata = record.wide[p.dCount + p.aCount + p.bCount + p.cCount];
  const sem::SparseRows rows = sparseRows(warp, {p.product, p.selector, p.ordered}, metadata);
  const ProductLanes lanes = lanesOf(warp, record);
  p.multiplySparse(p.product, rows, lanes.a, lanes.b, lanes.c, lanes.d);
  countProduct(warp, p);
}

void bindSparse(Binding &b) {
  Product p;
  auto &[shape, a, bType, c, d, saturate, bits] = p.product;
  shape = shapeNamed(b.modifier("shape"));
  a = matrixType(b.type("a"));
  bType = matrixType(b.type("b"));
  c = accumulatorType(b.type("c"));
  d = accumulatorType(b.type("d"));
  saturate = b.has("satfinite");
  p.sparse = true;
  p.ordered = b.modifier("sp") == "sp::ordered_metadata";
  if (!sem::isSparseMmaProduct(p.product))
    b.unsupported(format("'{}'", b.instruction.spelling()));
  if (sem::isFloat8(a)) {
    needsTarget(b, 89);
    p.multiplySparse = targetNumber(b) == 89 ? sem::multiplySparseHalves : sem::multiplySparseWidened;
  }
  p.macs = uint64_t(shape.m) * shape.n * shape.k / 2; // what is not stored is not multiplied
  p.aCount = sem::multiplicandRegisters(sem::Operand::A, shape, sem::bitsOf(a)) / 2;
  p.bCount = sem::multiplicandRegisters(sem::Operand::B, shape, sem::bitsOf(a));
  p.cCount = p.dCount = sem::accumulatorRegisters(shape, d);
  if (b.operandCount() != 6)
    b.fail(format("expected the six operands d, a, b, c, metadata and selector, but got {}", b.operandCount()));
  p.selector = sparsitySelector(b, b.operand(5), p.product);
  std::vector<Ref> refs;
  appendRegisters(b, b.operand(0), p.dCount, Type::B32, true, refs);
  appendRegisters(b, b.operand(1), p.aCount, Type::B32, false, refs);
  appendRegisters(b, b.operand(2), p.bCount, Type::B32, false, refs);
  appendRegisters(b, b.operand(3), p.cCount, Type::B32, false, refs);
  appendRegisters(b, b.operand(4), 1, Type::B32, false, refs);
  b.setWide(std::move(refs), p.dCount);
  b.keep(p);
  b.record.run = runSparseProduct;
}

constexpr auto cls = InstructionClass::Matrix;
#define WEFT_SPARSE "sp=sp|sp::ordered_metadata sync aligned alayout=row blayout=col "

const Form forms[] = {
    {"mma", WEFT_SPARSE "shape=m16n8k16|m16n8k32 d=f16|f32 a=f16 b=f16 c=f16|f32", "*", cls, bindSparse},
    {"mma", WEFT_SPARSE "shape=m16n8k16|m16n8k32 d=f32 a=bf16 b=bf16 c=f32", "*", cls, bindSparse},
    {"mma", WEFT_SPARSE "shape=m16n8k8|m16n8k16 d=f32 a=tf32 b=tf32 c=f32", "*", cls, bindSparse},
    {"mma", WEFT_SPARSE "shape=m16n8k64 d=f32 a=e4m3|e5m2 b=e4m3|e5m2 c=f32", "*", cls, bindSparse},
    {"mma", WEFT_SPARSE "shape=m16n8k32|m16n8k64 satfinite? d=s32 a=u8|s8 b=u8|s8 c=s32", "*", cls, bindSparse},
    {"mma", WEFT_SPARSE "shape=m16n8k64|m16n8k128 satfinite? d=s32 a=u4|s4 b=u4|s4 c=s32", "*", cls, bindSparse},
};

} // namespace

std::span<const Form> sparseForms() { return forms; }

} // namespace weft::simulator::machine
