// Part of Weft. SPDX-License-Identifier: Apache-2.0
//
//   %w = tile.load [K / 8, N]                                   a word: 8 numbers of 4 bits
//   %b = tile.reshape (tile.join (%w >> 0), ...)  : [K, N]      8 neighbours along K are of one word
//   %w = tile.load (base + k / 8 * N + n)         : [K, N]      8 neighbours along K load one word
//   %b = (%w >> k % 8 * 4) & 15
#include "compiler/Conversion/TileToWarp/Products/NeighboursAlongK.h"

#include "compiler/Conversion/TileToWarp/ChooseLayouts.h"
#include "compiler/Conversion/TileToWarp/LayoutCost.h"
#include "compiler/Conversion/TileToWarp/Products/PlanWgmma.h"
#include "dialects/Tile/IR/TileOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace weft {
namespace {

/// Places of a tensor, a coordinate for each axis.
using Place = SmallVector<int64_t>;

/// What an operand is cut out of: how many neighbours along K are of one word, and how much is loaded.
struct Words {
  unsigned neighbours;
  int64_t elements;
};

/// Of which place of an op's operand a place of its result is, as far as that is known: the first of several.
std::optional<Place> sourceOf(Operation *op, Place place) {
  return TypeSwitch<Operation *, std::optional<Place>>(op)
      .Case([&](tile::PermuteOp permute) {
        Place source(place.size());
        for (auto [to, from] : llvm::enumerate(permute.getOrder()))
          source[from] = place[to];
        return source;
      })
      .Case([&](tile::ReshapeOp reshape) {
        warp::LinearLayout from(tile::shapeOf(reshape.getType())), to(tile::shapeOf(reshape.getSource().getType()));
        return to.delinearize(from.linearize(place));
      })
      .Case([&](tile::ExpandDimsOp expand) {
        place.erase(place.begin() + expand.getAxis());
        return place;
      })
      .Case([&](tile::BroadcastOp broadcast) {
        for (auto [coordinate, size] : llvm::zip_equal(place, tile::shapeOf(broadcast.getSource().getType())))
          coordinate = std::min(coordinate, size - 1);
        return place;
      })
      .Case([&](tile::JoinOp) {
        place.pop_back();
        return place;
      })
      .Default([&](Operation *) { return kindOf(op) == OpKind::Elementwise ? std::optional(place) : std::nullopt; });
}

/// How many of the neighbours of a load at `places`, of powers of two, are of one word: of 32 bits, as `ldmatrix` gives
/// a lane; of 64 where an element is several of them, which go to registers, so that four lanes fill a sector.
Words wordsOf(tile::LoadOp load, ArrayRef<Place> places, const AxisAnalysis &axes) {
  const bool isPacked = !places.empty() && llvm::all_of(places.front(), [](int64_t at) { return at == 0; });
  const int64_t wordBits = isPacked ? 64 : 32;
  const int64_t bits = tile::elementTypeOf(load.getType()).getIntOrFloatBitWidth();
  AxisInfo pointer = axes.lookup(load.getPtr());
  auto isOfTheWord = [&](const Place &place) {
    return llvm::all_of(llvm::enumerate(place), [&](auto each) {
      auto [axis, at] = each;
      return at == 0 || pointer.constancy[axis] >= 2 * at ||
             (pointer.contiguity[axis] >= 2 * at && 2 * at * bits <= wordBits);
    });
  };
  const auto *beyond = llvm::find_if_not(places, isOfTheWord);
  int64_t elements = cast<RankedTensorType>(load.getType()).getNumElements();
  for (int64_t equal : pointer.constancy)
    elements /= equal;
  return {1u << (beyond - places.begin()), elements};
}

/// Finds what a value is cut out of: the largest of the tensors of integers, or of 8-bit floats, that it is computed
/// from.
class WordFinder {
public:
  explicit WordFinder(const AxisAnalysis &axes) : axes(axes) {}

  /// `places`: of 1, 2, 4, ... neighbours along K.
  void look(Value value, ArrayRef<Place> places) {
    Operation *op = value.getDefiningOp();
    if (!op || !isa<RankedTensorType>(value.getType()) || !seen.insert(value).second)
      return;
    if (auto load = dyn_cast<tile::LoadOp>(op)) {
      Type element = tile::elementTypeOf(load.getType());
      if (!element.isInteger() && !(element.isIntOrFloat() && element.getIntOrFloatBitWidth() == 8))
        return;
      if (Words words = wordsOf(load, places, axes); words.elements > largest.elements)
        largest = words;
      return;
    }
    SmallVector<Place> sources;
    for (const Place &place : places)
      if (std::optional<Place> source = sourceOf(op, place))
        sources.push_back(std::move(*source));
      else
        return;
    for (Value operand : op->getOperands())
      look(operand, sources);
  }
  unsigned neighbours() const { return largest.neighbours; }

private:
  const AxisAnalysis &axes;
  llvm::DenseSet<Value> seen;
  Words largest{/*neighbours=*/1, /*elements=*/0};
};

/// How many neighbours along K of a product's operand, 0 or 1, are cut out of one word; 1 where that is not known.
unsigned neighboursOfWord(tile::DotOp dot, unsigned index, const AxisAnalysis &axes) {
  Value operand = dot->getOperand(index);
  ArrayRef<int64_t> shape = tile::shapeOf(operand.getType());
  const unsigned axis = index == 0 ? 1 : 0;
  SmallVector<Place> places;
  for (int64_t at = 1; at < shape[axis]; at *= 2) {
    places.push_back(Place(shape.size(), 0));
    places.back()[axis] = at;
  }
  WordFinder finder(axes);
  finder.look(operand, places);
  return finder.neighbours();
}

/// Whether an operand, 0 or 1, is loaded as elements of 16 bits that are neighbours along K in memory.
bool isLoadedAlongK(tile::DotOp dot, unsigned index, const AxisAnalysis &axes) {
  Value operand = dot->getOperand(index);
  const unsigned axis = axisOfRoot(operand, index == 0 ? 1 : 0);
  auto load = rootOf(operand).getDefiningOp<tile::LoadOp>();
  if (!load)
    return false;
  AxisInfo pointer = axes.lookup(load.getPtr());
  return fastestFirst(pointer).front() == axis && pointer.contiguity[axis] > 1;
}

/// Whether a product's sums neither go on from another product's nor to one.
bool standsAlone(tile::DotOp dot) {
  auto isProduct = [](Operation *op) { return isa_and_nonnull<tile::DotOp>(op); };
  return !isProduct(dot.getAcc().getDefiningOp()) && llvm::none_of(dot->getUsers(), isProduct);
}

/// The grid in which no other warp computes the operand that is not `read`, 0 or 1, if warps are or may be so: as long
/// as what they all read of that one is no more than the exchange of the other would be.
std::optional<warp::WarpGrid> gridFor(tile::DotOp dot, unsigned read, unsigned neighbours, warp::WarpGrid grid,
                                      bool mayRegrid) {
  constexpr unsigned byVectors = 8;              // 16 bytes of a lane, as 'ldmatrix' reads them
  constexpr std::array<int64_t, 2> least{16, 8}; // rows and columns of an instruction
  const unsigned computed = 1 - read, warps = grid.rows * grid.columns;
  const std::array<unsigned, 2> split{grid.rows, grid.columns};
  auto shape = cast<RankedTensorType>(dot.getType()).getShape();
  if (split[read] == 1 && (neighbours >= byVectors || shape[read] <= shape[computed] / split[computed]))
    return grid;
  const int64_t exchanged = shape[computed] * (1 + split[read]) + shape[read] * split[computed];
  if (!mayRegrid || neighbours < byVectors || shape[computed] / warps < least[computed] ||
      shape[read] * warps > exchanged)
    return std::nullopt;
  return read == 0 ? warp::WarpGrid{1, warps} : warp::WarpGrid{warps, 1};
}

} // namespace

void takeWordsAlongK(tile::DotOp dot, DotPlan &plan, const AxisAnalysis &axes, bool mayRegrid) {
  constexpr unsigned ofRegister = 2;
  auto a = cast<RankedTensorType>(dot.getA().getType());
  if (plan.instruction[2] != 16 || dot.getBatch() > 1 || a.getElementTypeBitWidth() != 16)
    return;
  const unsigned most = warp::mostNeighboursAlongK(a.getDimSize(1));
  const std::array<unsigned, 2> ofWord{std::min(most, neighboursOfWord(dot, 0, axes)),
                                       std::min(most, neighboursOfWord(dot, 1, axes))};
  const unsigned neighbours = std::max(ofWord[0], ofWord[1]);
  if (neighbours <= ofRegister)
    return;
  std::optional<warp::WarpGrid> grid;
  if (std::min(ofWord[0], ofWord[1]) > ofRegister)
    grid = plan.warps;
  else if (unsigned read = ofWord[0] > ofRegister ? 1 : 0; isLoadedAlongK(dot, read, axes))
    grid = gridFor(dot, read, neighbours, plan.warps, mayRegrid && standsAlone(dot));
  if (!grid)
    return;
  plan.neighboursAlongK = neighbours;
  plan.warps = *grid;
}

} // namespace weft
