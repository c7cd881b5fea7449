// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Default schedules, in four steps:
//
//   table            form, element type, head sizes, unit     ─▶   rows, columns, warps, stages, channels
//   windows          a window's tokens are its tile's rows
//   blocks           tiles are no larger than the blocks of a pattern that has some
//   target           what a block's shared memory does not hold gets fewer stages, then smaller tiles
//
// A row of the table says what a program holds in registers: rows × (value channels + columns) sums over the threads
// of its warps, beside its own operand. Larger heads, and f32 operands, which enter products as two parts, leave
// registers for fewer columns. Where the target has matrix instructions of warpgroups, a gradient's tile has the 64 rows
// of one, so that a multiprocessor holds two blocks, of which one computes while the other waits, or three of small heads,
// for which two stages leave the room. Of forward's it holds three blocks of one warpgroup up to 64 channels, and two of two
// warpgroups up to 96. One pass takes 128 rows where registers hold them: half as many additions in memory.
#include "compiler/Conversion/AttnToTile/Attention/ScheduleTable.h"
#include "compiler/Conversion/AttnToTile/Attention/AttendBackward.h"
#include "compiler/Conversion/AttnToTile/Kernel/ProgramKernels.h"
#include "compiler/Conversion/AttnToTile/Patterns/PatternDependence.h"
#include "compiler/Conversion/AttnToTile/Patterns/WideValues.h"
#include "compiler/Support/Remarks.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Attn/Pattern/Membership.h"

using namespace mlir;

namespace weft {
namespace {

/// What a kernel computes. A form without a row of its own takes those of the next more general one: along a diagonal,
/// whose blocks masks cut, as elsewhere; dq, dk with dv, and a tangent, which has two sums, as any gradient.
enum class Form : uint8_t {
  Forward,
  Tangent,
  Gradient,
  Query,
  QueryAlongDiagonal,
  Keys,
  KeysAlongDiagonal,
  KeysAlone,
  OnePass,
  Values,
  GradientTangent
};

std::optional<Form> moreGeneral(Form form) {
  switch (form) {
  case Form::QueryAlongDiagonal:
    return Form::Query;
  case Form::KeysAlongDiagonal:
    return Form::Keys;
  case Form::Query:
  case Form::Keys:
  case Form::KeysAlone:
  case Form::OnePass:
  case Form::Tangent:
  case Form::GradientTangent:
    return Form::Gradient;
  case Form::Forward:
  case Form::Gradient:
  case Form::Values:
    return std::nullopt;
  }
  llvm_unreachable("all forms are handled");
}

enum class Element : uint8_t { Half, Single };  // of 16 bits, of 32
enum class Channels : uint8_t { Narrow, Wide }; // see WideValues.h

/// Whose matrix instructions a row is for: those of a warp, or of a warpgroup, where the target has them and no window
/// cuts the tiles (whose rows more warps share), with their sums in registers or in tensor memory.
enum class Unit : uint8_t { Any, Warp, Warpgroup, Tensor };

/// What a row is for that registers hold beside the products.
enum class Beside : uint8_t {
  Anything, // all
  Nothing,  // kernels that are `isPlain`
  Pairs,    // a score_mod or a mask that reads an element of each pair: `readsPairs`
  Scores,   // a score_mod whose gradient takes scores, which stay until dP is there: `keepsScores`
  Heads,    // heads that share keys, whose tiles of keys go through one after another
  Documents // a pattern that reads a number of each query and each key
};

/// Rows, columns, warps, stages, and channels of wide values.
struct Sizes {
  int64_t rows, columns, warps, stages, channels = 0;
};

/// A schedule, and what it is for: heads of more than `above` and at most `upTo` channels, of wide values those of
/// queries and keys alone.
struct Row {
  Form form;
  Element element;
  Channels values;
  int64_t upTo;
  Sizes sizes;
  Unit unit = Unit::Any;
  Beside beside = Beside::Anything;
  int64_t above = 0;
};

constexpr int64_t any = std::numeric_limits<int64_t>::max();

// Of rows that fit, the first is taken: those of warpgroups, and of kernels that hold more or less than others, stand
// before the others of their form. Along a diagonal smaller tiles have fewer pairs that do not belong. Of wide values,
// half the channels would compute scores twice as often; dq and dk take few at once; dv, in tiles of fewer keys, holds
// more.
constexpr Row table[] = {
    {Form::Forward, Element::Half, Channels::Narrow, 64, {256, 128, 8, 3}, Unit::Tensor, Beside::Nothing},
    {Form::Forward, Element::Half, Channels::Narrow, 128, {256, 128, 8, 2}, Unit::Tensor, Beside::Nothing},
    {Form::Forward, Element::Half, Channels::Narrow, 128, {256, 64, 8, 3}, Unit::Tensor},
    {Form::Forward, Element::Half, Channels::Narrow, any, {128, 64, 4, 2}, Unit::Tensor},
    {Form::Query, Element::Half, Channels::Narrow, 64, {128, 32, 4, 2}, Unit::Tensor, Beside::Scores},
    {Form::Query, Element::Half, Channels::Narrow, 128, {256, 64, 8, 2}, Unit::Tensor},
    {Form::QueryAlongDiagonal, Element::Half, Channels::Narrow, 64, {128, 32, 4, 2}, Unit::Tensor, Beside::Scores},
    {Form::QueryAlongDiagonal, Element::Half, Channels::Narrow, 128, {256, 64, 8, 2}, Unit::Tensor},
    {Form::Query, Element::Half, Channels::Narrow, any, {128, 32, 4, 2}, Unit::Tensor},
    {Form::Keys, Element::Half, Channels::Narrow, 64, {256, 32, 8, 2}, Unit::Tensor, Beside::Documents},
    {Form::Keys, Element::Half, Channels::Narrow, 128, {128, 64, 4, 2}, Unit::Tensor, Beside::Documents},
    {Form::Keys, Element::Half, Channels::Narrow, 64, {256, 64, 8, 2}, Unit::Tensor, Beside::Nothing},
    {Form::Keys, Element::Half, Channels::Narrow, 64, {256, 64, 8, 2}, Unit::Tensor, Beside::Pairs},
    {Form::Keys, Element::Half, Channels::Narrow, 64, {256, 64, 8, 2}, Unit::Tensor, Beside::Heads},
    {Form::Keys, Element::Half, Channels::Narrow, 64, {256, 32, 8, 2}, Unit::Tensor},
    {Form::Keys, Element::Half, Channels::Narrow, 128, {128, 128, 4, 2}, Unit::Tensor, Beside::Nothing},
    {Form::Keys, Element::Half, Channels::Narrow, 128, {128, 64, 4, 2}, Unit::Tensor},
    {Form::KeysAlongDiagonal, Element::Half, Channels::Narrow, 64, {256, 32, 8, 2}, Unit::Tensor, Beside::Documents},
    {Form::KeysAlongDiagonal, Element::Half, Channels::Narrow, 128, {128, 64, 4, 2}, Unit::Tensor, Beside::Documents},
    {Form::KeysAlongDiagonal, Element::Half, Channels::Narrow, 64, {256, 64, 8, 2}, Unit::Tensor, Beside::Nothing},
    {Form::KeysAlongDiagonal, Element::Half, Channels::Narrow, 64, {256, 64, 8, 2}, Unit::Tensor, Beside::Pairs},
    {Form::KeysAlongDiagonal, Element::Half, Channels::Narrow, 64, {256, 64, 8, 2}, Unit::Tensor, Beside::Heads},
    {Form::KeysAlongDiagonal, Element::Half, Channels::Narrow, 64, {256, 32, 8, 2}, Unit::Tensor},
    {Form::KeysAlongDiagonal, Element::Half, Channels::Narrow, 128, {128, 128, 4, 2}, Unit::Tensor, Beside::Nothing},
    {Form::KeysAlongDiagonal, Element::Half, Channels::Narrow, 128, {128, 64, 4, 2}, Unit::Tensor},
    {Form::KeysAlone, Element::Half, Channels::Narrow, any, {128, 32, 4, 2}, Unit::Tensor},
    {Form::Values, Element::Half, Channels::Narrow, any, {128, 64, 4, 2}, Unit::Tensor},

    {Form::Forward, Element::Half, Channels::Narrow, 64, {64, 128, 4, 2}, Unit::Warpgroup},
    {Form::Forward, Element::Half, Channels::Narrow, 96, {128, 64, 8, 3}, Unit::Warpgroup},
    {Form::Forward, Element::Half, Channels::Narrow, 128, {128, 128, 8, 2}, Unit::Warpgroup, Beside::Nothing},
    {Form::Forward, Element::Half, Channels::Narrow, any, {128, 64, 8, 2}, Unit::Warpgroup, Beside::Nothing},
    {Form::Forward, Element::Half, Channels::Narrow, 64, {64, 64, 4, 2}, Unit::Warp, Beside::Pairs},
    {Form::Forward, Element::Half, Channels::Narrow, 128, {64, 32, 4, 2}, Unit::Warp, Beside::Pairs},
    {Form::Forward, Element::Half, Channels::Narrow, 64, {128, 64, 4, 3}},
    {Form::Forward, Element::Half, Channels::Narrow, 128, {128, 64, 8, 3}},
    {Form::Forward, Element::Half, Channels::Narrow, any, {128, 32, 8, 2}},
    {Form::Forward, Element::Half, Channels::Wide, any, {128, 32, 8, 2, 256}},
    {Form::Forward, Element::Single, Channels::Narrow, 64, {64, 16, 4, 2}},
    {Form::Forward, Element::Single, Channels::Narrow, any, {64, 16, 8, 2}},
    {Form::Forward, Element::Single, Channels::Wide, any, {64, 16, 8, 2, 128}},

    {Form::Tangent, Element::Half, Channels::Narrow, 64, {64, 32, 4, 2}},
    {Form::Tangent, Element::Half, Channels::Wide, any, {64, 16, 8, 2, 128}},

    {Form::Query, Element::Half, Channels::Narrow, 64, {64, 64, 4, 2}, Unit::Warpgroup},
    {Form::QueryAlongDiagonal, Element::Half, Channels::Narrow, 64, {64, 64, 4, 2}, Unit::Warpgroup},
    {Form::QueryAlongDiagonal, Element::Half, Channels::Narrow, 128, {64, 32, 4, 2}, Unit::Warpgroup, Beside::Pairs},
    {Form::Query, Element::Half, Channels::Narrow, 192, {128, 64, 8, 2}, Unit::Warpgroup},
    {Form::Query, Element::Half, Channels::Narrow, any, {128, 32, 8, 2}, Unit::Warpgroup},
    {Form::QueryAlongDiagonal, Element::Half, Channels::Narrow, 128, {64, 16, 4, 2}, Unit::Warp, Beside::Pairs},
    {Form::Query, Element::Half, Channels::Narrow, 64, {64, 32, 4, 2}, Unit::Warp, Beside::Pairs},
    {Form::Query, Element::Half, Channels::Narrow, 64, {128, 16, 4, 3}, Unit::Warp, Beside::Scores},
    {Form::Query, Element::Half, Channels::Narrow, 128, {64, 16, 4, 2}, Unit::Warp, Beside::Pairs},
    {Form::Query, Element::Half, Channels::Narrow, 64, {128, 32, 4, 3}},
    {Form::Query, Element::Half, Channels::Narrow, 128, {128, 64, 8, 2}},
    {Form::QueryAlongDiagonal, Element::Half, Channels::Narrow, 64, {128, 16, 4, 3}, Unit::Warp, Beside::Scores},
    {Form::QueryAlongDiagonal, Element::Half, Channels::Narrow, 64, {128, 32, 4, 3}},
    {Form::QueryAlongDiagonal, Element::Half, Channels::Narrow, 96, {64, 32, 4, 3}, Unit::Warp},
    {Form::QueryAlongDiagonal, Element::Half, Channels::Narrow, 128, {64, 32, 4, 2}, Unit::Warp},
    {Form::QueryAlongDiagonal, Element::Half, Channels::Narrow, 128, {64, 64, 4, 2}},

    {Form::Keys, Element::Half, Channels::Narrow, 64, {64, 64, 4, 2}, Unit::Warpgroup},
    {Form::Keys, Element::Half, Channels::Narrow, 128, {64, 32, 4, 2}, Unit::Warpgroup, Beside::Pairs, 64},
    {Form::Keys, Element::Half, Channels::Narrow, 128, {64, 64, 4, 2}, Unit::Warpgroup},
    {Form::KeysAlongDiagonal, Element::Half, Channels::Narrow, 64, {64, 32, 4, 2}, Unit::Warp, Beside::Pairs},
    {Form::KeysAlongDiagonal, Element::Half, Channels::Narrow, 128, {32, 32, 4, 2}, Unit::Warp, Beside::Pairs},
    {Form::Keys, Element::Half, Channels::Narrow, 64, {64, 32, 4, 2}, Unit::Warp, Beside::Pairs},
    {Form::Keys, Element::Half, Channels::Narrow, 128, {32, 32, 4, 2}, Unit::Warp, Beside::Pairs},
    {Form::Keys, Element::Half, Channels::Narrow, 64, {128, 64, 8, 3}},
    {Form::Keys, Element::Half, Channels::Narrow, 96, {128, 32, 8, 2}},
    {Form::Keys, Element::Half, Channels::Narrow, 128, {128, 16, 8, 2}},
    {Form::KeysAlongDiagonal, Element::Half, Channels::Narrow, 64, {64, 64, 4, 3}},
    {Form::KeysAlongDiagonal, Element::Half, Channels::Narrow, 128, {64, 32, 4, 2}, Unit::Warp, Beside::Heads},
    {Form::KeysAlongDiagonal, Element::Half, Channels::Narrow, 128, {64, 32, 4, 3}, Unit::Warp},
    {Form::KeysAlone, Element::Half, Channels::Narrow, 192, {128, 64, 8, 2}, Unit::Warpgroup},
    {Form::KeysAlone, Element::Half, Channels::Narrow, any, {128, 32, 8, 2}, Unit::Warpgroup},
    {Form::OnePass, Element::Half, Channels::Narrow, 96, {64, 64, 4, 2}, Unit::Warpgroup},
    {Form::OnePass, Element::Half, Channels::Narrow, 128, {128, 64, 8, 3}, Unit::Warpgroup, Beside::Nothing},
    {Form::OnePass, Element::Half, Channels::Narrow, any, {128, 32, 8, 2}},
    {Form::OnePass, Element::Half, Channels::Wide, any, {128, 32, 8, 2, 64}},
    {Form::Values, Element::Half, Channels::Narrow, any, {128, 64, 8, 2}, Unit::Warpgroup},
    {Form::Values, Element::Half, Channels::Wide, 128, {64, 32, 8, 2, 512}},

    {Form::Gradient, Element::Half, Channels::Narrow, any, {64, 16, 8, 2}},
    {Form::Gradient, Element::Half, Channels::Wide, 128, {128, 32, 8, 2, 64}},
    {Form::Gradient, Element::Half, Channels::Wide, any, {64, 16, 8, 2, 64}},
    {Form::Gradient, Element::Single, Channels::Narrow, 64, {64, 16, 4, 2}},
    {Form::Gradient, Element::Single, Channels::Narrow, any, {32, 16, 4, 2}},
    {Form::Gradient, Element::Single, Channels::Wide, any, {32, 16, 4, 2, 64}},
};

Element elementOf(const Attend &attend) { return attend.form.isSingle ? Element::Single : Element::Half; }

/// Whether the kernels beside an op compute it.
bool isComputedAlong(Operation *op) {
  return op && !isa<KernelOpInterface>(op) && !op->hasTrait<OpTrait::IsTerminator>();
}

/// Whether the gradient of a score_mod takes scores, as that of what is not linear in them does.
bool keepsScores(const Attend &attend) {
  auto backward = dyn_cast<attn::AttendBackwardOp>(attend.op);
  return backward && attend.scoreMod && !backward.getScoreModGrad().getArgument(0).use_empty();
}

/// Whether a kernel of that form holds nothing beside its products: scores as they are, of a pattern that reads nothing,
/// and tokens' channels and results that are stored. A program of forward that heads share has rows of each; one of keys
/// goes through the heads.
bool isPlain(Form form, const Attend &attend) {
  bool computesOperands = llvm::any_of(attend.op->getOperands(), [](Value each) {
    return cast<attn::WholeTensorType>(each.getType()).getRank() == 4 && isComputedAlong(each.getDefiningOp()) &&
           !isFloat8AsHalf(each);
  });
  bool isQuery = form == Form::Query || form == Form::QueryAlongDiagonal;
  auto computesFrom = [](ResultRange results) {
    return llvm::any_of(results, [](Value each) { return llvm::any_of(each.getUsers(), isComputedAlong); });
  };
  bool readsPattern =
      readsPairs(attend) || anyPart(attend.patterns, llvm::IsaPred<attn::BlocksAttr, attn::BlockBitmapAttr>);
  return !attend.scoreMod && !readsPattern && attend.keepsAll() && (isQuery || attend.sharedGroup() == 1) &&
         !computesOperands && !computesFrom(isQuery ? attend.op->getResults().take_front() : attend.op->getResults());
}

/// Whose matrix instructions kernels are made of: of warpgroups where the target has them and no window cuts tiles.
Unit unitOf(const Attend &attend) {
  const targets::WarpgroupUnit &unit = TargetInfo::ofOrDefault(attend.op).warpgroups;
  if (unit.families.size() == 0 || attend.form.windows)
    return Unit::Warp;
  return unit.tensorColumns ? Unit::Tensor : Unit::Warpgroup;
}

bool serves(Unit unit, const Attend &attend) { return unit == Unit::Any || unit == unitOf(attend); }

bool serves(Beside beside, Form form, const Attend &attend) {
  switch (beside) {
  case Beside::Anything:
    return true;
  case Beside::Nothing:
    return isPlain(form, attend);
  case Beside::Pairs:
    return readsPairs(attend);
  case Beside::Scores:
    return keepsScores(attend);
  case Beside::Heads:
    return attend.sharedGroup() > 1;
  case Beside::Documents:
    return anyPart(attend.patterns, llvm::IsaPred<attn::DocumentAttr>);
  }
  llvm_unreachable("all are handled");
}

/// The row of a form for an attention; nullptr where neither it nor a more general form has one.
const Row *findRow(Form form, const Attend &attend) {
  Channels values = attend.form.isWide ? Channels::Wide : Channels::Narrow;
  int64_t size = attend.headSize();
  if (values == Channels::Narrow)
    size = std::max(size, attend.valueSize());
  for (std::optional<Form> each = form; each; each = moreGeneral(*each))
    for (const Row &row : table)
      if (row.form == *each && row.element == elementOf(attend) && row.values == values && size > row.above &&
          size <= row.upTo && serves(row.unit, attend) && serves(row.beside, form, attend))
        return &row;
  return nullptr;
}

/// The smallest blocks of queries and of keys of a pattern that tables or chance give block by block; the largest
/// numbers without any.
std::pair<int64_t, int64_t> smallestBlocks(const Attend &attend) {
  int64_t queries = any, keys = any;
  auto meet = [&](int64_t ofQueries, int64_t ofKeys) {
    queries = std::min(queries, ofQueries);
    keys = std::min(keys, ofKeys);
  };
  ArrayAttr patterns = attend.patterns;
  patterns.walk([&](Attribute part) {
    if (auto blocks = dyn_cast<attn::BlocksAttr>(part))
      meet(blocks.getBlockM(), blocks.getBlockN());
    else if (auto bitmap = dyn_cast<attn::BlockBitmapAttr>(part))
      meet(bitmap.getBlockM(), bitmap.getBlockN());
    else if (auto random = dyn_cast<attn::RandomBlocksAttr>(part))
      meet(random.getBlock(), random.getBlock());
  });
  return {queries, keys};
}

/// A tile over several blocks of a pattern walks what one of them needs, and masks the others: it is no larger than they
/// are, as long as it has the rows of four warps' matrix instructions.
Sizes withinBlocks(Form form, Sizes sizes, const Attend &attend) {
  constexpr int64_t leastRows = 64, leastColumns = 32;
  auto [queries, keys] = smallestBlocks(attend);
  const bool isKeys = form == Form::Keys || form == Form::KeysAlongDiagonal || form == Form::KeysAlone ||
                      form == Form::OnePass || form == Form::Values;
  const int64_t rows = isKeys ? keys : queries, columns = isKeys ? queries : keys;
  const int64_t heads = form == Form::Forward ? attend.sharedGroup() : 1; // of each of which a tile has rows
  while (sizes.rows > leastRows && sizes.rows / heads > rows) {
    sizes.rows /= 2;
    const int64_t warps = std::min(sizes.warps, std::max<int64_t>(4, sizes.rows / 16));
    // Fewer warps copy more each, and hold the addresses: beside the sums of wide heads there is no room.
    if (warps < sizes.warps && form != Form::Forward && attend.headSize() > 64)
      sizes.columns = std::min(sizes.columns, leastColumns);
    sizes.warps = warps;
  }
  while (sizes.columns > leastColumns && sizes.columns > columns)
    sizes.columns /= 2;
  return sizes;
}

Sizes lookUp(Form form, const Attend &attend) {
  const Row *row = findRow(form, attend);
  assert(row && "every form but that of dv alone has a row for all sizes");
  return withinBlocks(form, row->sizes, attend);
}

/// What decides how much a kernel holds.
struct Holding {
  int64_t sums;   ///< channels of a row's sums
  int64_t own;    ///< channels of the operands of a program's own rows
  int64_t ring;   ///< elements of the tiles of a stage
  bool exchanges; ///< whether warps exchange scores: each has fewer rows than a matrix instruction, or they are turned
};

Holding holdingOf(Form form, const Sizes &sizes, const Attend &attend) {
  bool isWide = attend.form.isWide, oneSum = form == Form::Forward || form == Form::Tangent || form == Form::Values;
  bool isQuery = form == Form::Query || form == Form::QueryAlongDiagonal;
  bool inPieces = isWide && !oneSum; // of both sides, in an inner loop
  int64_t head = attend.headSize(), values = isWide ? sizes.channels : attend.valueSize();
  Holding holding;
  bool isHeads = isQuery || isWide || form == Form::KeysAlone;
  holding.sums = oneSum ? values : isHeads ? head : head + values;
  holding.own = oneSum || isWide ? head : head + values;
  holding.ring = sizes.columns * (head + values) + (inPieces ? sizes.rows * values : 0);
  holding.exchanges = form == Form::OnePass || sizes.rows < 16 * sizes.warps;
  if (form == Form::Tangent || form == Form::GradientTangent) // Each has a tangent.
    holding.sums *= 2, holding.own *= 2, holding.ring *= 2;
  return holding;
}

/// Bytes of shared memory that a kernel takes by a schedule: the rings of the side it walks, with a gradient's numbers
/// of each of its rows; the program's own operands where registers do not hold them beside sums and scores; and scores
/// that warps exchange. (f32 operands enter products as two parts, for which registers have no room.)
int64_t sharedBytes(Form form, const Sizes &sizes, const Attend &attend, const TargetInfo &target) {
  int64_t bytes = attend.storage().getIntOrFloatBitWidth() / 8, rows = sizes.rows, columns = sizes.columns;
  Holding holding = holdingOf(form, sizes, attend);
  int64_t words = rows * (holding.sums + columns) + rows * holding.own * bytes / 4;
  int64_t room = int64_t(target.registersPerThread) * 3 / 4 * target.warpSize * sizes.warps;
  int64_t own = attend.form.isSingle || words > room ? rows * holding.own : 0;
  int64_t numbers = form == Form::Forward || form == Form::Tangent ? 0 : 2 * llvm::alignTo(4 * columns, 128);
  return bytes * (sizes.stages * holding.ring + own + (holding.exchanges ? rows * columns : 0)) +
         sizes.stages * numbers;
}

/// The next smaller schedule: fewer stages than make copies overlap at all cost least; then fewer rows of a warp, which
/// registers hold with ease; then fewer warps, columns and rows. Nothing where there is none.
std::optional<Sizes> smaller(Sizes sizes) {
  if (sizes.stages > 2) { // NOLINT(bugprone-branch-clone): what costs least comes first, and the same last
    --sizes.stages;
  } else if (sizes.rows > 16 && sizes.rows >= 16 * sizes.warps) {
    sizes.rows /= 2;
  } else if (sizes.rows > 16 && sizes.warps > 4) {
    sizes.warps /= 2;
    sizes.rows /= 2;
  } else if (sizes.columns > 16) {
    sizes.columns /= 2;
  } else if (sizes.rows > 16) {
    sizes.warps = std::max<int64_t>(1, sizes.warps / 2);
    sizes.rows /= 2;
  } else if (sizes.stages > 1) {
    --sizes.stages;
  } else {
    return std::nullopt;
  }
  return sizes;
}

/// The schedule itself where a block of the target has the shared memory for it, else the first smaller one. (The
/// smallest is left to fail, with what takes the memory.)
Sizes fitted(Form form, Sizes sizes, const Attend &attend) {
  const TargetInfo &target = TargetInfo::ofOrDefault(attend.op);
  int64_t wanted = sharedBytes(form, sizes, attend, target);
  if (wanted > target.sharedBytesPerBlock)
    remarks::missed(remarks::defaultSchedule, attend.op)
        << remark::reason("the default schedule {0}x{1}x{2}x{3} is made smaller: it takes {4} bytes of shared memory, "
                          "and a block has {5}",
                          sizes.rows, sizes.columns, sizes.warps, sizes.stages, wanted, target.sharedBytesPerBlock);
  while (sharedBytes(form, sizes, attend, target) > target.sharedBytesPerBlock)
    if (std::optional<Sizes> next = smaller(sizes))
      sizes = *next;
    else
      break;
  return sizes;
}

attn::ScheduleAttr scheduleOf(Operation *op, const Sizes &sizes) {
  return attn::ScheduleAttr::get(op->getContext(), sizes.rows, sizes.columns, sizes.warps, sizes.stages,
                                 sizes.channels);
}

/// The largest block of keys of a window whose scores fit into registers, beside the values that may be held.
int64_t largestBlock(const Attend &attend, int64_t size, int64_t tokens) {
  if (attend.form.isSingle)
    return size > 64 ? 16 : tokens <= 64 ? 64 : 32;
  bool holds = tokens > 64 && isConvolved(attend.values[0]);
  if (size <= 64)
    return holds ? 64 : 128;
  return size > 128 || holds ? 32 : 64;
}

/// A forward schedule for a window, which is one block of its own where it can be: scores and sums have to fit into
/// registers.
Sizes inWindow(Sizes sizes, const Attend &attend, const WindowTiling &windows) {
  int64_t size = std::max(attend.headSize(), attend.valueSize());
  bool wide = attend.form.isSingle, narrow = !wide && size <= 64;
  sizes.rows = std::min<int64_t>(windowRowCount(windows), wide || size > 128 ? 64 : 128);
  if (narrow && windows.tokens > 128 && windows.tokens <= 256)
    sizes.rows = 256;
  int64_t block = largestBlock(attend, size, windows.tokens);
  bool whole = windows.tokens <= sizes.rows && sizes.rows <= block;
  sizes.columns = whole ? sizes.rows : std::min<int64_t>(sizes.rows, std::min<int64_t>(block, 64));
  // A warp holds 32 rows of 64 scores, or 16 of 128; of larger heads, and with what is around a window, 8 rows.
  bool more = isConvolved(attend.values[0]) && (windows.tokens > 64 || (size > 32 && !windows.grid.empty()));
  bool few = !narrow || more;
  if (few || sizes.rows * sizes.columns > 128 * 64)
    sizes.warps = 8;
  sizes.warps = std::min<int64_t>(sizes.warps, sizes.rows / (few ? 8 : 16));
  return sizes;
}

/// A forward schedule for few queries: a tile has the rows of one matrix instruction, or the heads that share keys where
/// these are more, and its warps share a block's keys, then the values' channels.
Sizes ofFewRows(const Attend &attend) {
  int64_t most = attend.form.isWide ? 32 : 64;
  int64_t rows = std::clamp<int64_t>(llvm::bit_ceil(uint64_t(attend.sharedGroup())), 16, most);
  int64_t channels = attend.form.isWide ? std::min<int64_t>(llvm::alignTo(attend.valueSize(), 16), 512) : 0;
  return {rows, 32, attend.form.isWide ? 8 : 4, 3, channels};
}

/// Whether a pattern is a band along the diagonal of positions, or lies on one side of it.
bool isDiagonal(Attribute pattern) {
  if (std::optional<attn::WindowAttr> window = attn::patterns::asWindow(pattern))
    return window->getLeft() || window->getRight();
  auto neighbourhood = dyn_cast<attn::NeighbourhoodAttr>(pattern);
  return isa<attn::DilatedAttr>(pattern) || (neighbourhood && neighbourhood.getShape().size() == 1);
}

/// Whether walks of an op are along a diagonal, whose blocks masks cut.
bool hasDiagonal(attn::AttendBackwardOp op) { return anyPart(op.getPatterns(), isDiagonal); }

/// The table's schedule of a gradient, in a window if there is one.
attn::ScheduleAttr gradientSchedule(attn::AttendBackwardOp op, Form form) {
  Attend attend = Attend::of(op);
  Sizes sizes = lookUp(form, attend);
  if (const std::optional<WindowTiling> &windows = attend.form.windows) {
    sizes.rows = std::min<int64_t>(windowRowCount(*windows), 64);
    sizes.columns = fitsOneKernel(attend, *windows) ? sizes.rows : std::min(sizes.rows, sizes.columns);
    // In the kernel for all gradients each warp has 16 rows of half the sums.
    sizes.warps = std::min<int64_t>(8, sizes.rows / 8);
  }
  return scheduleOf(op, fitted(form, sizes, attend));
}

/// Channels of wide values that dq and dk take at once where a chosen schedule does not say.
constexpr int64_t pieceChannels = 64;

} // namespace

bool makesValuesApart(attn::AttendBackwardOp op) {
  Attend attend = Attend::of(op);
  bool fillsRegisters = !attend.form.isSingle && std::max(attend.headSize(), attend.valueSize()) > 128;
  return attend.form.isWide || (fillsRegisters && unitOf(attend) != Unit::Warp);
}

bool isConvolved(Value values) { return llvm::any_of(values.getUsers(), llvm::IsaPred<attn::ConvolveOp>); }

bool fitsOneKernel(const Attend &attend, const WindowTiling &windows) {
  bool small = !attend.form.isSingle && std::max(attend.headSize(), attend.valueSize()) <= 64;
  return windows.tokens <= (small ? 64 : 32);
}

attn::ScheduleAttr forwardSchedule(attn::AttendOp op) {
  Attend attend = Attend::of(op);
  Sizes sizes = op.getSplits() ? ofFewRows(attend) : lookUp(Form::Forward, attend);
  if (op.getSchedule())
    return withChannels(attend, *op.getSchedule(), sizes.channels);
  if (const std::optional<WindowTiling> &windows = attend.form.windows)
    sizes = inWindow(sizes, attend, *windows);
  return scheduleOf(op, fitted(Form::Forward, sizes, attend));
}

attn::ScheduleAttr tangentSchedule(attn::AttendTangentOp op) {
  Attend attend = Attend::of(op);
  return scheduleOf(op, fitted(Form::Tangent, lookUp(Form::Tangent, attend), attend));
}

attn::ScheduleAttr gradientTangentSchedule(attn::AttendBackwardOp op) {
  return gradientSchedule(op, Form::GradientTangent);
}

attn::ScheduleAttr queryGradientSchedule(attn::AttendBackwardOp op) {
  if (op.getScheduleQuery())
    return withChannels(Attend::of(op), *op.getScheduleQuery(), pieceChannels);
  return gradientSchedule(op, hasDiagonal(op) ? Form::QueryAlongDiagonal : Form::Query);
}

attn::ScheduleAttr keyGradientSchedule(attn::AttendBackwardOp op) {
  if (op.getScheduleKeys())
    return withChannels(Attend::of(op), *op.getScheduleKeys(), pieceChannels);
  if (takesOnePass(op))
    return gradientSchedule(op, Form::OnePass);
  if (makesValuesApart(op) && !Attend::of(op).form.isWide)
    return gradientSchedule(op, Form::KeysAlone);
  return gradientSchedule(op, hasDiagonal(op) ? Form::KeysAlongDiagonal : Form::Keys);
}

attn::ScheduleAttr valueGradientSchedule(attn::AttendBackwardOp op) {
  Attend attend = Attend::of(op);
  const Row *own = attend.form.windows ? nullptr : findRow(Form::Values, attend);
  int64_t channels = own ? own->sizes.channels : !attend.form.isWide ? 0 : attend.form.isSingle ? 128 : 256;
  if (op.getScheduleValues())
    return withChannels(attend, *op.getScheduleValues(), channels);
  if (own)
    return scheduleOf(op, fitted(Form::Values, own->sizes, attend));
  attn::ScheduleAttr keys = keyGradientSchedule(op);
  return scheduleOf(op, {keys.getRows(), keys.getColumns(), keys.getWarps(), keys.getStages(), channels});
}

int64_t diagonalRows(const Attend &attend, int64_t warps) {
  int64_t rows = 16 * warps, size = std::max(attend.headSize(), attend.valueSize());
  while (rows > 16 && rows * size > warps * 2048)
    rows /= 2;
  return rows;
}

} // namespace weft
