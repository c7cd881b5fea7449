// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Running/Tensor/TensorProducts.h"
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Checks/EngineReads.h"
#include "runtime/Simulator/Machine/Checks/Tensor/PeerReads.h"
#include "runtime/Simulator/Machine/Checks/Tensor/TensorAccess.h"
#include "runtime/Simulator/Semantics/Tensor/Product.h"
#include "runtime/Support/Format.h"

#include <algorithm>
#include <utility>

namespace weft::simulator::machine {
namespace {

namespace sem = semantics;

constexpr size_t rowBytes = 32;

/// 64 rows of one block: D has 16 lanes of each warp's quarter.
bool isHalf(const TensorOperation &op) { return !op.form->pair && op.shape.m == 64; }
/// 128 rows of a pair: the upper lanes of D have the second half of its columns.
bool isDivided(const TensorOperation &op) { return op.form->pair && op.shape.m == 128; }

/// Groups of lanes that an operand in tensor memory has (PTX ISA 9.7.16.10.5, layouts A, B, D and F).
uint8_t groupsOf(const TensorOperation &op, uint32_t address) {
  return !isHalf(op) ? 0xff : address >> 16 ? 0xaa : 0x55;
}

/// A product's rows 16 at a time: the first lane of each, and which half of the columns it has.
struct Strip {
  uint32_t row, lane, half;
};
std::vector<Strip> stripsOf(const TensorOperation &op) {
  std::vector<Strip> strips;
  const uint32_t rows = op.shape.m / (op.form->pair ? 2 : 1);
  for (uint32_t half = 0; half < (isDivided(op) ? 2u : 1u); ++half)
    for (uint32_t row = 0; row < rows; row += 16)
      strips.push_back({row, isHalf(op) ? 2 * row + (op.d >> 16) : 64 * half + row, half});
  return strips;
}

/// The rows of an operand in shared memory, of all blocks that have some.
std::vector<std::byte> rowsOf(std::span<Block *const> blocks, const TensorPieces &pieces, uint32_t rows) {
  std::vector<std::byte> all(blocks.size() * rows * rowBytes);
  for (size_t i = 0; i < blocks.size(); ++i)
    gatherRows(pieces, blocks[i]->shared.data(), all.data() + i * rows * rowBytes);
  return all;
}

/// A block's rows of D, by one half of B's rows or two.
void computeIn(Block &block, size_t place, const TensorOperation &op, std::span<const sem::TensorMultiplier> halves) {
  TensorMemory &memory = tensorOf(block);
  std::vector<std::byte> a;
  if (op.aPieces)
    a = rowsOf(std::array{&block}, *op.aPieces, op.shape.m / (op.form->pair ? 2 : 1));
  for (const Strip &strip : stripsOf(op)) {
    std::byte inTensor[16 * rowBytes];
    for (uint32_t row = 0; row < 16 && !op.aPieces; ++row)
      std::memcpy(inTensor + row * rowBytes, &memory.cell(strip.lane + row, op.a & 0xffff), rowBytes);
    const uint32_t disabled = op.disabled[4 * place + strip.lane / 32] >> strip.lane % 32 & 0xffff;
    halves[strip.half].multiply(op.aPieces ? a.data() + strip.row * rowBytes : inTensor,
                                &memory.cell(strip.lane, op.d & 0xffff), tensorColumns, ~disabled & 0xffff);
  }
}

void compute(Block &issuer, TensorOperation &op) {
  if (std::exchange(op.computed, true))
    return;
  const std::vector<Block *> blocks = blocksOf(issuer, *op.form);
  const std::vector<std::byte> b = rowsOf(blocks, *op.bPieces, op.shape.n / uint32_t(blocks.size()));
  const sem::TensorProduct product{
      op.shape.a, op.shape.b,    op.shape.d, op.shape.saturate, op.shape.negateA != op.shape.negateB,
      op.adds,    op.form->scale};
  std::vector<sem::TensorMultiplier> halves;
  const uint32_t parts = isDivided(op) ? 2 : 1, columns = op.shape.n / parts;
  for (uint32_t i = 0; i < parts; ++i)
    halves.emplace_back(product, b.data() + i * columns * rowBytes, columns);
  for (size_t i = 0; i < blocks.size(); ++i)
    computeIn(*blocks[i], i, op, halves);
}

/// What this machine does not compute.
std::string unsupported(const TensorOperation &op) {
  if (op.shape.a != op.shape.b && (bitsOf(op.shape.a) == 16 || bitsOf(op.shape.a) == 32))
    return "products of f16 and bf16";
  const bool turned =
      (bitsOf(op.shape.a) < 8 && op.shape.transposeA) || (bitsOf(op.shape.b) < 8 && op.shape.transposeB);
  if (turned)
    return "operands of fewer than 8 bits that are contiguous along M or N";
  if (op.form->aInTensor && bitsOf(op.shape.a) < 8)
    return "an A in tensor memory of fewer than 8 bits";
  for (const auto &pieces : {op.aPieces, op.bPieces})
    if (pieces && pieces->unsupported)
      return pieces->fault;
  return {};
}

/// What is wrong with the operands; empty where nothing is.
std::string faultOf(const TensorOperation &op) {
  for (const auto &pieces : {op.aPieces, op.bPieces})
    if (pieces && !pieces->unsupported && !pieces->fault.empty())
      return pieces->fault;
  const uint32_t lane = op.d >> 16;
  if (lane != 0 && !(isHalf(op) && lane == tensorGroupLanes))
    return format("expected a D that begins at lane 0{} of tensor memory, but got lane {}", isHalf(op) ? " or 16" : "",
                  lane);
  if (op.form->aInTensor && op.a >> 16 != lane)
    return format("expected an A that begins at the lane of D, {}, but got lane {}", lane, op.a >> 16);
  return {};
}

/// Whether all that the operands name is shared memory of the blocks.
bool isInBounds(Warp &warp, const TensorOperation &op) {
  const uint64_t size = warp.block->shared.size();
  for (const auto &pieces : {op.aPieces, op.bPieces})
    if (pieces && uint64_t(pieces->last) + 16 > size) {
      report(warp, FindingKind::OutOfBounds, op.lane,
             format("reads 16 bytes at byte {} of shared memory, of which the block has {}", pieces->last, size));
      return false;
    }
  return true;
}

/// Reads of shared memory begin; true where nothing wrote some of the bytes.
bool beginReads(Warp &warp, const TensorOperation &op, std::span<Block *const> blocks) {
  bool unwritten = false;
  for (const auto &pieces : {op.aPieces, op.bPieces})
    for (Block *block : blocks)
      if (pieces)
        unwritten |= block == warp.block ? beginEngineRead(warp, op.lane, pieces->begins)
                                         : beginPeerRead(warp, op.lane, *block, pieces->begins);
  return unwritten;
}

/// Which lanes of D are written then: those that all they are made of is.
void markResult(TensorMemory &memory, const TensorOperation &op, size_t place, bool unwritten) {
  for (uint32_t group = 0; group < tensorGroups; ++group) {
    if (!(op.write.groups >> group & 1))
      continue;
    uint32_t lanes = unwritten ? 0 : 0xffff;
    for (uint32_t i = 0; i < op.reads.columns; ++i)
      lanes &= memory.region(group, op.reads.column + i).written;
    const uint32_t disabled = op.disabled[4 * place + group / 2] >> 16 * (group % 2) & 0xffff;
    for (uint32_t i = 0; i < op.write.columns; ++i) {
      uint16_t &written = memory.region(group, op.write.column + i).written;
      written = uint16_t((written & disabled) | ((op.adds ? written & lanes : lanes) & ~disabled));
    }
  }
}

/// Whether the accesses to tensor memory may be made.
bool checkAccesses(Warp &warp, const TensorOperation &op, std::span<Block *const> blocks) {
  for (Block *block : blocks) {
    if (op.reads.columns && !checkTensorAccess(warp, {*block, op.lane, op.reads, false, &op, "reads as A"}))
      return false;
    if (!checkTensorAccess(warp, {*block, op.lane, op.write, true, &op, "accumulates into"}))
      return false;
  }
  return true;
}

void count(Warp &warp, const TensorOperation &op) {
  const uint64_t k = rowBytes * 8 / std::max(8u, bitsOf(op.shape.a)), macs = uint64_t(op.shape.m) * op.shape.n * k;
  ++warp.worker->counters.tensorProducts;
  warp.worker->counters.mmaMacs += macs;
  warp.worker->costs[op.pc].macs += macs;
}

TensorOperation operationOf(Warp &warp, unsigned lane, const TensorForm &form, const TensorOperands &operands) {
  TensorOperation op;
  op.form = &form;
  op.pc = warp.here();
  op.warp = warp.index;
  op.lane = lane;
  op.shape = InstructionDescriptor::decode(operands.instruction, form.kind, form.pair);
  op.d = operands.d;
  op.adds = operands.adds;
  op.disabled = operands.disabled;
  if (!op.shape.fault.empty())
    return op;
  const uint32_t share = form.pair ? 2 : 1;
  auto pieces = [&](uint64_t descriptor, bool transposed, sem::TensorElement element, uint32_t rows) {
    return tensorOf(*warp.block).pieces.of(descriptor, transposed, std::max(1u, bitsOf(element) / 8), rows / share);
  };
  op.bPieces = pieces(operands.b, op.shape.transposeB, op.shape.b, op.shape.n);
  op.write = {groupsOf(op, op.d), op.d & 0xffff, op.shape.n / (isDivided(op) ? 2 : 1)};
  if (form.aInTensor) {
    op.a = uint32_t(operands.a);
    op.reads = {groupsOf(op, op.a), op.a & 0xffff, InstructionDescriptor::aColumns};
  } else {
    op.aPieces = pieces(operands.a, op.shape.transposeA, op.shape.a, op.shape.m);
  }
  return op;
}

} // namespace

std::vector<Block *> blocksOf(Block &block, const TensorForm &form) {
  if (!form.pair)
    return {&block};
  const PairOf pair = pairOf(block);
  return {pair.begin(), pair.end()};
}

void issueTensorProduct(Warp &warp, unsigned lane, const TensorForm &form, const TensorOperands &operands) {
  TensorMemory &memory = tensorOf(*warp.block);
  TensorOperation op = operationOf(warp, lane, form, operands);
  const std::vector<Block *> blocks = blocksOf(*warp.block, form);
  if (!op.shape.fault.empty())
    return report(warp, FindingKind::TensorOperands, lane, op.shape.fault);
  if (form.pair && blocks.size() != 2)
    return report(warp, FindingKind::TensorOperands, lane, "expected a cluster with another block for '.cta_group::2'");
  if (std::string fault = faultOf(op); !fault.empty())
    return report(warp, FindingKind::TensorOperands, lane, fault);
  if (std::string what = unsupported(op); !what.empty())
    return report(warp, FindingKind::Unsupported, lane, format("has {}, which the simulator does not compute", what));
  if (!isInBounds(warp, op) || !checkAccesses(warp, op, blocks))
    return;
  const bool unwritten = beginReads(warp, op, blocks);
  for (size_t i = 0; i < blocks.size(); ++i)
    markResult(tensorOf(*blocks[i]), op, i, unwritten);
  count(warp, op);
  op.number = memory.issued++;
  if (tracksShared(warp)) { // what the warp does now is no part of it
    op.clock = warp.block->shadow.now(warp.index);
    warp.block->shadow.advance(warp.index);
  }
  const bool allComputed =
      std::ranges::all_of(memory.operations, [](const TensorOperation &each) { return each.computed; });
  memory.operations.push_back(std::move(op));
  warp.worker->changed = true;
  if (warp.block->engines->early() && allComputed)
    compute(*warp.block, memory.operations.back());
}

void computeTensor(Block &block, uint64_t end) {
  for (TensorOperation &op : tensorOf(block).operations)
    if (op.number < end)
      compute(block, op);
}

} // namespace weft::simulator::machine
