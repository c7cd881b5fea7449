// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Running/Tensor/Transfers.h"
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Checks/Tensor/TensorAccess.h"
#include "runtime/Support/Format.h"

#include <algorithm>

namespace weft::simulator::machine {
namespace {

/// Where a lane's register lies: lane and column behind the address, before packing.
struct Offset {
  uint32_t lane, column;
};

/// PTX ISA 9.7.16.2.3.1, the figures of fragments.
Offset offsetOf(const TransferForm &form, uint32_t lane, uint32_t reg) {
  switch (form.shape) {
  case TransferShape::L32x32b:
    return {lane, reg};
  case TransferShape::L16x32bx2:
    return {lane % 16, reg};
  case TransferShape::L16x64b:
    return {lane / 4 + 8 * (lane & 1), 2 * reg + (lane >> 1 & 1)};
  case TransferShape::L16x128b:
    return {lane / 4 + 8 * (reg & 1), 4 * (reg / 2) + lane % 4};
  case TransferShape::L16x256b:
    return {lane / 4 + 8 * (reg >> 1 & 1), 8 * (reg / 4) + 2 * (lane % 4) + (reg & 1)};
  }
  return {};
}

/// The cell of a lane's register, or the first of the two that it is packed of.
struct Cells {
  const TransferForm &form;
  uint32_t address;

  Offset at(uint32_t lane, uint32_t reg) const {
    const Offset offset = offsetOf(form, lane, reg);
    const uint32_t half = form.shape == TransferShape::L16x32bx2 ? lane / 16 * form.split : 0;
    return {(address >> 16) + offset.lane, (address & 0xffff) + (form.packs ? 2 : 1) * offset.column + half};
  }
};

/// What a transfer touches; none, with a finding, where its warp may not.
std::optional<std::array<TensorRange, 2>> rangesOf(Warp &warp, const TransferForm &form, uint32_t address) {
  const uint32_t lane = address >> 16, own = 32 * (warp.index % 4);
  const bool whole = form.shape == TransferShape::L32x32b;
  if (lane != own && (whole || lane != own + tensorGroupLanes)) {
    report(warp, FindingKind::TensorOperands, firstLane(warp.mask),
           format("begins at lane {} of tensor memory, where warp {} reaches lanes {} to {}{}", lane, warp.index, own,
                  own + 31, whole ? "" : ", and 16 lanes from the first or the 17th of these"));
    return std::nullopt;
  }
  const auto groups = uint8_t((whole ? 3u : 1u) << lane / tensorGroupLanes);
  const TensorRange first{groups, address & 0xffff, form.columns()};
  TensorRange second;
  if (form.shape == TransferShape::L16x32bx2)
    second = {groups, first.column + form.split, first.columns};
  return std::array{first, second};
}

/// Whether a transfer may be made; checks its accesses.
std::optional<std::array<TensorRange, 2>> begin(Warp &warp, const TransferForm &form, uint32_t address, bool stores) {
  auto ranges = rangesOf(warp, form, address);
  if (!ranges)
    return ranges;
  for (const TensorRange &range : *ranges)
    if (range.columns && !checkTensorAccess(warp, {*warp.block, firstLane(warp.mask), range, stores, nullptr,
                                                   stores ? "writes" : "reads"}))
      return std::nullopt;
  (stores ? warp.worker->counters.tensorBytesWritten : warp.worker->counters.tensorBytesRead) +=
      uint64_t(form.registers) * laneCount * 4;
  return ranges;
}

/// Lanes that did not load what something wrote.
uint32_t unwrittenLanes(TensorMemory &memory, const Cells &cells, uint32_t reg) {
  uint32_t lanes = 0;
  for (uint32_t lane = 0; lane < laneCount; ++lane) {
    const Offset at = cells.at(lane, reg);
    for (uint32_t i = 0; i < (cells.form.packs ? 2u : 1u); ++i)
      if (!(memory.region(at.lane / tensorGroupLanes, at.column + i).written >> at.lane % tensorGroupLanes & 1))
        lanes |= 1u << lane;
  }
  return lanes;
}

void writeCells(TensorMemory &memory, const TensorTransfer &transfer) {
  for (const auto &[cell, value] : transfer.values)
    memory.cells[cell] = value;
}

/// Marks the cells of a register as written, but for those of lanes in which nothing wrote the register.
void markStored(TensorMemory &memory, const Cells &cells, uint32_t reg, uint32_t unwritten) {
  for (uint32_t lane = 0; lane < laneCount; ++lane) {
    const Offset at = cells.at(lane, reg);
    for (uint32_t i = 0; i < (cells.form.packs ? 2u : 1u); ++i) {
      uint16_t &written = memory.region(at.lane / tensorGroupLanes, at.column + i).written;
      const auto bit = uint16_t(1u << at.lane % tensorGroupLanes);
      written = uint16_t((unwritten >> lane & 1) ? written & ~bit : written | bit);
    }
  }
}

} // namespace

uint32_t registersOf(TransferShape shape) {
  return shape == TransferShape::L16x256b ? 4 : shape == TransferShape::L16x128b ? 2 : 1;
}

uint32_t TransferForm::columns() const {
  const uint32_t each = shape == TransferShape::L16x256b   ? 8
                        : shape == TransferShape::L16x128b ? 4
                        : shape == TransferShape::L16x64b  ? 2
                                                           : 1;
  return each * count * (packs ? 2 : 1);
}

void loadTensor(Warp &warp, const TransferForm &form, const Ref *registers, uint32_t address) {
  TensorMemory &memory = tensorOf(*warp.block);
  const auto ranges = begin(warp, form, address, false);
  if (!ranges)
    return;
  const Cells cells{form, address};
  const bool follows = warp.block->grid->options.checks.uninitialised;
  uint32_t origin = 0;
  for (uint32_t reg = 0; reg < form.registers; ++reg) {
    uint32_t *to = warp.reg<uint32_t>(registers[reg]);
    for (uint32_t lane = 0; lane < laneCount; ++lane) {
      const Offset at = cells.at(lane, reg);
      const uint32_t *from = &memory.cell(at.lane, at.column);
      to[lane] = form.packs ? (from[0] & 0xffff) | from[1] << 16 : from[0];
    }
    if (const uint32_t unwritten = follows ? unwrittenLanes(memory, cells, reg) : 0) {
      if (!origin)
        origin = readFirst(warp, Origin::Tensor, address);
      poisonRegister(warp, registers[reg], unwritten, origin);
    }
  }
  memory.transfers.push_back({false, warp.index, warp.here(), {(*ranges)[0], (*ranges)[1]}, {}, {}, false});
  if (!warp.block->grid->options.checks.async || !tracksShared(warp))
    return;
  memory.transfers.back().unread.assign(registers, registers + form.registers);
  warp.loadsTensor = warp.watched = true;
}

void storeTensor(Warp &warp, const TransferForm &form, const Ref *registers, uint32_t address) {
  TensorMemory &memory = tensorOf(*warp.block);
  const auto ranges = begin(warp, form, address, true);
  if (!ranges)
    return;
  const Cells cells{form, address};
  TensorTransfer transfer{true, warp.index, warp.here(), {(*ranges)[0], (*ranges)[1]}, {}, {}, false};
  for (uint32_t reg = 0; reg < form.registers; ++reg) {
    const uint32_t *from = warp.reg<const uint32_t>(registers[reg]);
    for (uint32_t lane = 0; lane < laneCount; ++lane) {
      const Offset at = cells.at(lane, reg);
      const uint32_t cell = at.lane * tensorColumns + at.column;
      transfer.values.emplace_back(cell, form.packs ? from[lane] & 0xffff : from[lane]);
      if (form.packs)
        transfer.values.emplace_back(cell + 1, from[lane] >> 16);
    }
    markStored(memory, cells, reg, poisonOf(warp, registers[reg]));
  }
  if (warp.block->engines->early())
    writeCells(memory, transfer);
  memory.transfers.push_back(std::move(transfer));
}

void awaitTensor(Warp &warp, bool stores) {
  TensorMemory &memory = tensorOf(*warp.block);
  const bool tracks = tracksShared(warp);
  std::erase_if(memory.transfers, [&](const TensorTransfer &transfer) {
    if (transfer.warp != warp.index || transfer.stores != stores)
      return false;
    writeCells(memory, transfer);
    const uint32_t now = tracks ? warp.block->shadow.now(warp.index) : 0;
    for (const TensorRange &range : transfer.ranges)
      if (tracks && range.columns)
        endTensorAccess(*warp.block, range, stores,
                        {now, warp.index, transfer.pc, uint32_t(warp.block->index), false, 0, 0, 0});
    return true;
  });
}

} // namespace weft::simulator::machine
