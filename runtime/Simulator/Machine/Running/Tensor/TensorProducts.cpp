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
constexpr const char *noPair = "expected a cluster with another block for '.cta_group::2'";

/// 64 rows of one block: D has 16 lanes of each warp's quarter.
bool isHalf(const TensorOperation &op) { return !op.form->pair && !op.form->stationary && op.shape.m == 64; }
/// Rows of a block's product, or of its part of a pair's.
uint32_t rowsInBlock(const TensorOperation &op) { return op.shape.m / (op.form->pair ? 2 : 1); }
/// Into how many parts D's columns are divided, of which each has lanes of its own, one after another: two of 128 rows
/// of a pair, and with .ws as many as there is room for.
uint32_t partsOf(const TensorOperation &op) {
  return op.form->stationary || (op.form->pair && op.shape.m == 128) ? tensorLanes / rowsInBlock(op) : 1;
}

/// Groups of lanes that an operand in tensor memory has (PTX ISA 9.7.16.10.5, layouts A, B, D, E, F and G).
uint8_t groupsOf(const TensorOperation &op, uint32_t address) {
  return !isHalf(op) ? 0xff : address >> 16 ? 0xaa : 0x55;
}

/// A product's rows 16 at a time: the first lane of each, and which part of the columns it has.
struct Strip {
  uint32_t row, lane, part;
};
std::vector<Strip> stripsOf(const TensorOperation &op) {
  std::vector<Strip> strips;
  const uint32_t rows = rowsInBlock(op), parts = partsOf(op);
  for (uint32_t part = 0; part < parts; ++part)
    for (uint32_t row = 0; row < rows; row += 16)
      strips.push_back({row, isHalf(op) ? 2 * row + (op.d >> 16) : tensorLanes / parts * part + row, part});
  return strips;
}

/// The rows of an operand in shared memory, of all blocks that have some.
std::vector<std::byte> rowsOf(std::span<Block *const> blocks, const TensorPieces &pieces, uint32_t rows) {
  std::vector<std::byte> all(blocks.size() * rows * rowBytes);
  for (size_t i = 0; i < blocks.size(); ++i)
    gatherRows(pieces, blocks[i]->shared.data(), all.data() + i * rows * rowBytes);
  return all;
}

/// The scales of rows from `row` on, as the lanes of a part of 32 have them: a row's in one word, 32 rows in a column.
std::vector<double> scalesOf(TensorMemory &memory, const TensorOperation &op, uint32_t lane, uint32_t address,
                             uint8_t first, uint32_t row, uint32_t count) {
  const unsigned each = op.form->scales();
  std::vector<double> scales;
  for (uint32_t i = row; i < row + count; ++i)
    for (unsigned k = 0; k < each; ++k)
      scales.push_back(
          sem::scaleOf(op.shape.scale,
                       uint8_t(memory.cell(lane / 32 * 32 + i % 32, (address & 0xffff) + i / 32) >> 8 * (first + k))));
  return scales;
}

/// What tcgen05.cp copies, from a block's shared memory to its tensor memory.
void copyRowsIn(Block &block, const TensorOperation &op) {
  TensorMemory &memory = tensorOf(block);
  const uint32_t parts = op.form->parts;
  auto copy = [&](size_t piece, uint32_t lane) {
    const uint32_t column = (op.d & 0xffff) + 4 * uint32_t(piece % parts);
    std::memcpy(&memory.cell(lane, column), block.shared.data() + op.aPieces->begins[piece], 16);
  };
  for (size_t piece = 0; piece < op.aPieces->begins.size(); ++piece) {
    const auto row = uint32_t(piece / parts);
    switch (op.form->copy) {
    case TensorCopyShape::Rows64Apart: // .warpx2::02_13
      copy(piece, row);
      copy(piece, row + 64);
      break;
    case TensorCopyShape::Rows64Beside: // .warpx2::01_23
      copy(piece, row + row / 32 * 32);
      copy(piece, row + row / 32 * 32 + 32);
      break;
    case TensorCopyShape::Rows32: // .warpx4
      for (uint32_t part = 0; part < 4; ++part)
        copy(piece, row + 32 * part);
      break;
    default:
      copy(piece, row);
    }
  }
}

/// A block's rows of D, by the parts of B's rows.
void computeIn(Block &block, size_t place, const TensorOperation &op, std::span<const sem::TensorMultiplier> parts) {
  TensorMemory &memory = tensorOf(block);
  std::vector<std::byte> a;
  if (op.aPieces)
    a = rowsOf(std::array{&block}, *op.aPieces, rowsInBlock(op));
  for (const Strip &strip : stripsOf(op)) {
    std::byte inTensor[16 * rowBytes];
    for (uint32_t row = 0; row < 16 && !op.aPieces; ++row)
      std::memcpy(inTensor + row * rowBytes, &memory.cell(strip.lane + row, op.a & 0xffff), rowBytes);
    const uint32_t disabled = op.disabled[4 * place + strip.lane / 32] >> strip.lane % 32 & 0xffff;
    sem::BlockScales scales;
    if (op.form->block) {
      scales.a = scalesOf(memory, op, strip.lane, op.scaleA, op.shape.scaleA, strip.row, 16);
      scales.b = scalesOf(memory, op, strip.lane, op.scaleB, op.shape.scaleB, 0, op.shape.n);
    }
    parts[strip.part].multiply(op.aPieces ? a.data() + strip.row * rowBytes : inTensor,
                               &memory.cell(strip.lane, op.d & 0xffff), tensorColumns, ~disabled & 0xffff, scales);
  }
}

void compute(Block &issuer, TensorOperation &op) {
  if (std::exchange(op.computed, true))
    return;
  const std::vector<Block *> blocks = blocksOf(issuer, *op.form);
  if (op.form->copy != TensorCopyShape::None) {
    for (Block *block : blocks)
      copyRowsIn(*block, op);
    return;
  }
  const std::vector<std::byte> b = rowsOf(blocks, *op.bPieces, op.shape.n / uint32_t(blocks.size()));
  sem::TensorProduct product{op.shape.a, op.shape.b, op.shape.d, op.shape.saturate};
  product.negate = op.shape.negateA != op.shape.negateB;
  product.adds = op.adds;
  product.scale = op.form->scale;
  product.block = op.form->block;
  product.packed = isPacked(op.form->kind);
  std::vector<sem::TensorMultiplier> parts;
  const uint32_t columns = op.shape.n / partsOf(op);
  for (uint32_t i = 0; i < partsOf(op); ++i)
    parts.emplace_back(product, b.data() + i * columns * rowBytes, columns);
  for (size_t i = 0; i < blocks.size(); ++i)
    computeIn(*blocks[i], i, op, parts);
}

/// What this machine does not compute.
std::string unsupported(const TensorOperation &op) {
  if (op.shape.a != op.shape.b && (bitsOf(op.shape.a) == 16 || bitsOf(op.shape.a) == 32))
    return "products of f16 and bf16";
  const bool turned =
      (bitsOf(op.shape.a) < 8 && op.shape.transposeA) || (bitsOf(op.shape.b) < 8 && op.shape.transposeB);
  if (turned)
    return "operands of fewer than 8 bits that are contiguous along M or N";
  if (op.form->aInTensor && bitsOf(op.shape.a) < 8 && !isPacked(op.form->kind))
    return "an A in tensor memory of fewer than 8 bits";
  if (op.shape.mostShift)
    return "a maximum shift of B";
  if (op.form->block && op.form->pair && op.shape.m == 128)
    return "block scales of 64 rows in each block of a pair";
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
  if (op.form->block && ((op.scaleA | op.scaleB) >> 16))
    return format("expected scales that begin at lane 0 of tensor memory, but got lanes {} and {}", op.scaleA >> 16,
                  op.scaleB >> 16);
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

/// Bytes of 16 that hold elements: of fewer than 8 bits, with padding behind them, the first.
uint32_t heldBytes(const TensorOperation &op, sem::TensorElement element) {
  const bool padded = op.form->copy == TensorCopyShape::None && !isPacked(op.form->kind) && bitsOf(element) < 8;
  return padded ? 2 * bitsOf(element) : 16;
}

/// Reads of a block's shared memory begin; true where nothing wrote some of the bytes.
bool beginReads(Warp &warp, const TensorOperation &op, Block &block, const TensorPieces &pieces, uint32_t bytes) {
  if (&block != warp.block)
    return beginPeerRead(warp, op.lane, block, pieces.begins);
  if (bytes == 16)
    return beginEngineRead(warp, op.lane, pieces.begins);
  std::vector<SharedRange> ranges;
  for (const uint32_t piece : pieces.begins)
    ranges.push_back({piece, bytes});
  return beginEngineRead(warp, op.lane, ranges);
}

bool beginReads(Warp &warp, const TensorOperation &op, std::span<Block *const> blocks) {
  bool unwritten = false;
  for (Block *block : blocks) {
    if (op.aPieces)
      unwritten |= beginReads(warp, op, *block, *op.aPieces, heldBytes(op, op.shape.a));
    if (op.bPieces)
      unwritten |= beginReads(warp, op, *block, *op.bPieces, heldBytes(op, op.shape.b));
  }
  return unwritten;
}

/// Whether something wrote all scales that the rows of a part of 32 lanes have.
bool hasScales(TensorMemory &memory, const TensorOperation &op, uint32_t part) {
  auto isWritten = [&](const TensorRange &range, uint32_t rows) {
    for (uint32_t row = 0; range.columns && row < rows; ++row) {
      const TensorRegion &region = memory.region(2 * part + row % 32 / tensorGroupLanes, range.column + row / 32);
      if (!(region.written >> row % tensorGroupLanes & 1))
        return false;
    }
    return true;
  };
  return isWritten(op.reads[1], rowsInBlock(op)) && isWritten(op.reads[2], op.shape.n);
}

/// Which lanes of D are written then: those that all they are made of is.
void markResult(TensorMemory &memory, const TensorOperation &op, size_t place, bool unwritten) {
  for (uint32_t group = 0; group < tensorGroups; ++group) {
    if (!(op.write.groups >> group & 1))
      continue;
    uint32_t lanes = unwritten || !hasScales(memory, op, group / 2) ? 0 : 0xffff;
    for (uint32_t i = 0; i < op.reads[0].columns; ++i)
      lanes &= memory.region(group, op.reads[0].column + i).written;
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
    for (size_t i = 0; i < op.reads.size(); ++i)
      if (op.reads[i].columns &&
          !checkTensorAccess(warp, {*block, op.lane, op.reads[i], false, &op, i ? "reads as scales" : "reads as A"}))
        return false;
    const char *what = op.form->copy == TensorCopyShape::None ? "accumulates into" : "copies to";
    if (!checkTensorAccess(warp, {*block, op.lane, op.write, true, &op, what}))
      return false;
  }
  return true;
}

void count(Warp &warp, const TensorOperation &op) {
  const uint64_t k = rowBytes * 8 / std::max(isPacked(op.form->kind) ? 4u : 8u, bitsOf(op.shape.a)),
                 macs = uint64_t(op.shape.m) * op.shape.n * k;
  ++warp.worker->counters.tensorProducts;
  warp.worker->counters.mmaMacs += macs;
  warp.worker->costs[op.pc].macs += macs;
}

/// An operation whose operands are right is issued.
void begin(Warp &warp, TensorOperation op, std::span<Block *const> blocks) {
  TensorMemory &memory = tensorOf(*warp.block);
  const bool copies = op.form->copy != TensorCopyShape::None;
  const bool unwritten = !copies && beginReads(warp, op, blocks);
  for (size_t i = 0; i < blocks.size(); ++i)
    markResult(tensorOf(*blocks[i]), op, i, copies ? beginReads(warp, op, blocks.subspan(i, 1)) : unwritten);
  if (!copies)
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

TensorOperation operationOf(Warp &warp, unsigned lane, const TensorForm &form, const TensorOperands &operands) {
  TensorOperation op;
  op.form = &form;
  op.pc = warp.here();
  op.warp = warp.index;
  op.lane = lane;
  op.shape = isScaled(form.kind)
                 ? InstructionDescriptor::decodeScaled(operands.instruction, form.kind, form.scales(), form.pair)
                 : InstructionDescriptor::decode(operands.instruction, form.kind, form.pair, form.stationary);
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
  op.write = {groupsOf(op, op.d), op.d & 0xffff, op.shape.n / partsOf(op)};
  if (form.block) {
    op.scaleA = operands.scaleA;
    op.scaleB = operands.scaleB;
    op.reads[1] = {0xff, op.scaleA & 0xffff, rowsInBlock(op) / 32};
    op.reads[2] = {0xff, op.scaleB & 0xffff, (op.shape.n + 31) / 32};
  }
  if (form.aInTensor) {
    op.a = uint32_t(operands.a);
    op.reads[0] = {groupsOf(op, op.a), op.a & 0xffff, InstructionDescriptor::aColumns};
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
  TensorOperation op = operationOf(warp, lane, form, operands);
  const std::vector<Block *> blocks = blocksOf(*warp.block, form);
  if (!op.shape.fault.empty())
    return report(warp, FindingKind::TensorOperands, lane, op.shape.fault);
  if (form.pair && blocks.size() != 2)
    return report(warp, FindingKind::TensorOperands, lane, noPair);
  if (std::string fault = faultOf(op); !fault.empty())
    return report(warp, FindingKind::TensorOperands, lane, fault);
  if (std::string what = operands.columnMask ? "columns that are zeros" : unsupported(op); !what.empty())
    return report(warp, FindingKind::Unsupported, lane, format("has {}, which the simulator does not compute", what));
  if (!isInBounds(warp, op) || !checkAccesses(warp, op, blocks))
    return;
  begin(warp, std::move(op), blocks);
}

void issueTensorCopy(Warp &warp, unsigned lane, const TensorForm &form, uint32_t to, uint64_t descriptor) {
  TensorOperation op;
  op.form = &form;
  op.pc = warp.here();
  op.warp = warp.index;
  op.lane = lane;
  op.d = to;
  op.adds = false;
  const uint32_t rows = form.copy == TensorCopyShape::Rows128 ? 128 : form.copy == TensorCopyShape::Rows32 ? 32 : 64;
  op.aPieces = tensorOf(*warp.block).pieces.of(descriptor, false, 1, rows, form.parts);
  op.write = {0xff, to & 0xffff, 4 * form.parts};
  const std::vector<Block *> blocks = blocksOf(*warp.block, form);
  if (form.pair && blocks.size() != 2)
    return report(warp, FindingKind::TensorOperands, lane, noPair);
  if (std::string fault = faultOf(op); !fault.empty())
    return report(warp, FindingKind::TensorOperands, lane, fault);
  if (op.aPieces->unsupported)
    return report(warp, FindingKind::Unsupported, lane,
                  format("has {}, which the simulator does not compute", op.aPieces->fault));
  if (!isInBounds(warp, op) || !checkAccesses(warp, op, blocks))
    return;
  warp.worker->counters.tensorBytesWritten += uint64_t(tensorLanes) * 16 * form.parts * blocks.size();
  begin(warp, std::move(op), blocks);
}

void computeTensor(Block &block, uint64_t end) {
  for (TensorOperation &op : tensorOf(block).operations)
    if (op.number < end)
      compute(block, op);
}

} // namespace weft::simulator::machine
