// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Running/Warpgroups.h"
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Checks/EngineReads.h"
#include "runtime/Simulator/Machine/Checks/ProductRegisters.h"
#include "runtime/Simulator/Machine/Checks/SparseMetadata.h"
#include "runtime/Support/Format.h"

#include <algorithm>
#include <utility>

namespace weft::simulator::machine {
namespace {

namespace sem = semantics;

constexpr unsigned groupWarps = 4;

const WgmmaForm &formOf(const PendingProduct &product) { return *static_cast<const WgmmaForm *>(product.record->aux); }

/// An 8 x 8 matrix of an operand's tile: 32 lanes' words, as mma.sync has them.
using Words = std::array<uint32_t, laneCount>;

/// Of eight rows, or, transposed, columns.
Words loadTile(const std::byte *shared, const uint32_t *pieces, bool transposed) {
  const std::byte *rows[8];
  for (unsigned i = 0; i < 8; ++i)
    rows[i] = shared + pieces[i];
  Words words;
  sem::loadMatrix(rows, transposed, words.data());
  return words;
}

/// The tiles of A of a warp: rows 0 to 7 and 8 to 15 of the first 16 bytes, and of the second.
std::array<Words, 4> tilesOfA(Warp &warp, const PendingProduct &product) {
  const WgmmaForm &form = formOf(product);
  std::array<Words, 4> tiles;
  for (unsigned i = 0; i < 4; ++i)
    if (form.aInRegisters)
      std::copy_n(warp.reg<const uint32_t>(product.record->wide[form.dCount + i]), laneCount, tiles[i].begin());
    else
      tiles[i] = loadTile(warp.block->shared.data(), &product.a->begins[16 * (i % 2) + 8 * (i / 2)], form.aTransposed);
  return tiles;
}

/// The signs of all elements of a tile changed.
void negate(const WgmmaForm &form, std::array<Words, 4> &tiles) {
  const unsigned bits = sem::bitsOf(form.step.a);
  const uint32_t signs = bits == 8 ? 0x8080'8080 : bits == 16 ? 0x8000'8000 : 0x8000'0000;
  for (Words &tile : tiles)
    for (uint32_t &word : tile)
      word ^= signs;
}

/// Eight columns at a time, as mma.sync and mma.sp have them.
void computeByColumns(Warp &warp, PendingProduct &product, const std::array<Words, 4> &a) {
  const WgmmaForm &form = formOf(product);
  static constexpr Words zeros{};
  const unsigned perTile = form.dCount * 8 / form.n, parts = form.sparse ? 4 : 2;
  for (uint32_t tile = 0; tile < form.n / 8; ++tile) {
    std::array<Words, 4> b;
    for (unsigned part = 0; part < parts; ++part)
      b[part] = loadTile(warp.block->shared.data(), &product.b->begins[8 * (parts * tile + part)], form.bTransposed);
    void *d[4];
    const void *c[4];
    for (unsigned i = 0; i < perTile; ++i) {
      d[i] = warp.reg<std::byte>(product.record->wide[tile * perTile + i]);
      c[i] = product.adds ? d[i] : static_cast<const void *>(zeros.data());
    }
    const void *left[] = {&a[0], &a[1], &a[2], &a[3]}, *right[] = {&b[0], &b[1], &b[2], &b[3]};
    if (form.sparse)
      sem::multiplySparse(form.step, *product.rows, left, right, c, d);
    else
      sem::multiply(form.step, left, right, c, d);
  }
}

void compute(Warp &warp, PendingProduct &product) {
  if (std::exchange(product.computed, true))
    return;
  const WgmmaForm &form = formOf(product);
  std::array<Words, 4> tiles = tilesOfA(warp, product);
  if (form.negated)
    negate(form, tiles);
  if (form.sparse || sem::bitsOf(form.step.a) == 8)
    return computeByColumns(warp, product, tiles);
  const void *a[] = {&tiles[0], &tiles[1], &tiles[2], &tiles[3]};
  void *d[128];
  for (unsigned i = 0; i < form.dCount; ++i)
    d[i] = warp.reg<std::byte>(product.record->wide[i]);
  sem::multiplyPieces({form.step.a, form.step.d, form.n / 8, a, warp.block->shared.data(), product.b->begins.data(),
                       form.bTransposed, product.adds, d});
}

/// Compares what a warp issues with what the others of its warpgroup do; false, with a finding, where it differs.
bool agrees(Warp &warp, const GroupStep &step) {
  Block &block = *warp.block;
  Warpgroup &group = block.engines->groups[warp.index / groupWarps];
  const uint32_t first = warp.index / groupWarps * groupWarps;
  auto refuse = [&](const std::string &what, uint32_t pc) {
    report(warp, FindingKind::WgmmaWarpgroup, firstLane(warp.mask), what, siteName(warp, pc));
    return false;
  };
  if (first + groupWarps > block.warps.size())
    return refuse("expected the four warps of a warpgroup, but the block ends within this one", step.pc);
  uint64_t &mine = group.done[warp.index % groupWarps];
  if (mine - group.first == group.steps.size())
    group.steps.push_back(step);
  const GroupStep known = group.steps[size_t(mine - group.first)];
  ++mine;
  warp.worker->changed = true; // others of the warpgroup may wait for this one
  for (uint64_t least = *std::min_element(group.done.begin(), group.done.end()); group.first < least; ++group.first)
    group.steps.pop_front();
  for (uint32_t i = first; i < first + groupWarps; ++i)
    if (!block.warps[i].live && group.done[i % groupWarps] < mine)
      return refuse(format("is executed without warp {}, which has ended", i), step.pc);
  if (known.pc != step.pc)
    return refuse("is executed while another warp of the warpgroup executes another wgmma", known.pc);
  if (known.a != step.a || known.b != step.b || known.adds != step.adds)
    return refuse("has other descriptors, or another scale-d, than in another warp of the warpgroup", known.pc);
  return true;
}

/// Descriptors that name what is no matrix of the block's shared memory are reported.
bool isReadable(Warp &warp, const PendingProduct &product) {
  const unsigned lane = firstLane(warp.mask);
  const uint64_t size = warp.block->shared.size();
  for (const auto &operand : {product.b, product.a}) {
    if (operand && !operand->valid) {
      report(warp, FindingKind::WgmmaWarpgroup, lane, "expected a base offset of 0 in its matrix descriptors");
      return false;
    }
    if (operand && operand->tooWide) {
      report(warp, FindingKind::WgmmaWarpgroup, lane,
             "expected a swizzle of 64 or 128 bytes, or none, of a B that a sparse A meets: its rows have 64 bytes");
      return false;
    }
    if (operand && uint64_t(operand->last) + 16 > size) {
      report(warp, FindingKind::OutOfBounds, lane,
             format("reads 16 bytes at byte {} of shared memory, of which the block has {}", operand->last, size));
      return false;
    }
  }
  return true;
}

/// Calls `act` with the pieces of each operand in shared memory.
template <typename Act> bool eachOperand(const PendingProduct &product, Act act) {
  bool any = act(product.b->begins);
  if (product.a)
    any |= act(product.a->begins);
  return any;
}

void countProduct(Warp &warp, const WgmmaForm &form) {
  const uint64_t macs = 16 * uint64_t(form.n) * (form.step.shape.k >> form.sparse); // what is stored of A is multiplied
  Counters &counters = warp.worker->counters;
  counters.mmaMacs += macs;
  warp.worker->costs[warp.here()].macs += macs;
  const bool first = warp.index % groupWarps == 0;
  counters.wgmma += first;
  counters.wgmmaSharedBytes += (first ? form.n * (form.sparse ? 64 : 32) : 0) + (form.aInRegisters ? 0 : 16 * 32);
}

/// Accumulators that are not read may have held what nothing wrote.
void forgetUnread(Warp &warp, const PendingProduct &product) {
  const WgmmaForm &form = formOf(product);
  if (product.adds || !warp.anyPoison)
    return;
  for (unsigned i = form.dCount; i < form.registers() + form.sparse; ++i)
    if (poisonOf(warp, product.record->wide[i]))
      return;
  for (unsigned i = 0; i < form.dCount; ++i)
    std::fill_n(&warp.poison[product.record->wide[i] >> 2], 9, 0);
}

/// Ends a warp's products up to a step of its warpgroup: they are computed, and what they read may be overwritten.
void finish(Warp &warp, uint64_t last) {
  Warpgroup &group = warp.block->engines->groups[warp.index / groupWarps];
  for (PendingProduct &product : warp.products->pending) {
    if (product.step > last)
      return;
    compute(warp, product);
    if (std::exchange(product.read, true) || !tracksShared(warp))
      continue;
    product.reader = group.reader;
    product.over = group.over;
    if (product.clock)
      group.loaded[warp.index % groupWarps] = product.clock;
    eachOperand(product, [&](std::span<const uint32_t> pieces) {
      endEngineRead(warp, pieces, group.reader, group.over, product.pc);
      return false;
    });
  }
}

/// A wgmma is of all four warps at once: one that has awaited it may let its operands be overwritten, as the one
/// thread of a warpgroup does that CUTLASS sends to say so. False where some of them have yet to come to it.
bool finishTogether(Warp &warp, const PendingProduct &newest) {
  Block &block = *warp.block;
  Warpgroup &group = block.engines->groups[warp.index / groupWarps];
  const uint32_t first = warp.index / groupWarps * groupWarps;
  for (uint32_t i = 0; i < groupWarps; ++i)
    if (block.warps[first + i].live && group.done[i] <= newest.step)
      return false;
  const bool tracks = tracksShared(warp);
  if (tracks && !newest.read) {
    // A granule has a bit for each of 32 readers; where none is left, the warp that awaits it reads for all.
    const auto engine = uint32_t(block.warps.size() + warp.index / groupWarps);
    group.reader = engine < 32 ? engine : warp.index;
    group.over = block.shadow.stamp(group.reader, warp.index);
  }
  for (uint32_t i = 0; i < groupWarps; ++i)
    if (block.warps[first + i].live)
      finish(block.warps[first + i], newest.step);
  if (tracks)
    block.shadow.know(warp.index, group.reader, group.over);
  // What the others' A was loaded from has been read: CUTLASS's kernels of mixed types rest on that.
  for (uint32_t i = 0; i < groupWarps && tracks; ++i)
    if (first + i != warp.index)
      block.shadow.know(warp.index, first + i, group.loaded[i]);
  return true;
}

} // namespace

std::shared_ptr<Products> makeProducts(const Warp &warp) {
  auto products = std::make_shared<Products>();
  const size_t slots = warp.kernel->registerBytes / slotBytes + 2;
  products->written.assign(slots, 1);
  products->inFlight.assign(slots, 0);
  return products;
}

void issueProduct(Warp &warp, const Record &record, uint64_t a, uint64_t b, bool adds) {
  Products &products = *warp.products;
  PendingProduct product;
  product.record = &record;
  product.pc = warp.here();
  product.group = products.committed;
  product.adds = adds;
  const WgmmaForm &form = formOf(product);
  auto &known = warp.worker->pieces;
  if (!known)
    known = std::make_shared<KnownPieces>();
  product.b = known->of(b, form.bTransposed, 0, form.n, form.sparse ? 4 : 2);
  if (!form.aInRegisters)
    product.a = known->of(a, form.aTransposed, 16 * (warp.index % groupWarps), 16);
  const bool agreed = agrees(warp, {product.pc, form.aInRegisters ? 0 : a, b, adds});
  if (!isReadable(warp, product) || !agreed)
    return;
  if (form.sparse) // PTX lets the register be written at once: wgmma.fence orders accumulators and A only
    product.rows = std::make_shared<sem::SparseRows>(
        sparseRows(warp, {form.step, form.selector, false}, record.wide[form.registers()]));
  countProduct(warp, form);
  beginProduct(warp, product);
  const bool unwritten = eachOperand(
      product, [&](std::span<const uint32_t> pieces) { return beginEngineRead(warp, firstLane(warp.mask), pieces); });
  forgetUnread(warp, product);
  product.step = warp.block->engines->groups[warp.index / groupWarps].done[warp.index % groupWarps] - 1;
  if (form.aInRegisters && tracksShared(warp)) {
    product.clock = warp.block->shadow.now(warp.index);
    warp.block->shadow.advance(warp.index); // what the warp does now is no part of it
  }
  const unsigned dCount = form.dCount;
  if (unwritten) {
    const uint32_t origin = originAt(warp, warp.block->shared.data() + product.b->begins[0], 16, 0xffff);
    for (unsigned i = 0; i < dCount; ++i)
      poisonRegister(warp, record.wide[i], ~0u, origin);
  }
  // In order: an early one would overtake those before it.
  const bool allComputed = std::all_of(products.pending.begin(), products.pending.end(),
                                       [](const PendingProduct &each) { return each.computed; });
  products.pending.push_back(product);
  if (warp.block->engines->early() && allComputed)
    compute(warp, products.pending.back());
}

void fenceProducts(Warp &warp) { ++warp.products->fences; }
void commitProducts(Warp &warp) { ++warp.products->committed; }

bool awaitProducts(Warp &warp, uint32_t left) {
  Products &products = *warp.products;
  size_t count = 0;
  while (count < products.pending.size() && uint64_t(products.pending[count].group) + left < products.committed)
    ++count;
  if (!count)
    return true;
  if (!finishTogether(warp, products.pending[count - 1]))
    return false;
  products.pending.erase(products.pending.begin(), products.pending.begin() + long(count));
  forgetRetired(warp);
  return true;
}

void endProducts(Warp &warp) {
  Block &block = *warp.block;
  Products &products = *warp.products;
  const bool checks = block.grid->options.checks.async;
  if (!products.pending.empty() && checks)
    report(warp, FindingKind::WgmmaAccumulator, 0, "ends with a wgmma in flight, whose accumulators are lost",
           siteName(warp, products.pending[0].pc));
  products.pending.clear();
  const Warpgroup &group = block.engines->groups[warp.index / groupWarps];
  const uint64_t mine = group.done[warp.index % groupWarps], end = group.first + group.steps.size();
  if (mine < end && checks)
    report(warp, FindingKind::WgmmaWarpgroup, 0, "ends without a wgmma that others of its warpgroup execute",
           siteName(warp, group.steps[size_t(mine - group.first)].pc));
}

} // namespace weft::simulator::machine
