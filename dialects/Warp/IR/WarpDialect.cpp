// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Registration of the warp dialect; text and checks of the layout attribute and the shared-memory type.
#include "dialects/Warp/IR/WarpDialect.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft::warp;

#include "dialects/Warp/IR/WarpDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Warp/IR/WarpAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Warp/IR/WarpTypes.cpp.inc"

namespace {
/// Prints layouts once, as #layout, #layout1, ... at the top of a module.
struct LayoutAliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(Attribute attribute, raw_ostream &stream) const override {
    auto layout = dyn_cast<LayoutAttr>(attribute);
    if (!layout)
      return AliasResult::NoAlias;
    stream << (layout.getLayout().bases(InDim::Offset).empty() ? "layout" : "shared");
    return AliasResult::FinalAlias;
  }
};
} // namespace

void WarpDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Warp/IR/WarpAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Warp/IR/WarpTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Warp/IR/WarpOps.cpp.inc"
      >();
  addInterfaces<LayoutAliases>();
}

Operation *WarpDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location location) {
  return arith::ConstantOp::materialize(builder, value, type, location);
}

// Layouts.

// NOLINTNEXTLINE(performance-unnecessary-value-param): as MLIR declares it
LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, LinearLayout layout) {
  bool offset = !layout.bases(InDim::Offset).empty();
  for (InDim dim : {InDim::Register, InDim::Lane, InDim::Warp, InDim::Block})
    if (offset && !layout.bases(dim).empty())
      return emitError() << "expected 'offset' to stand alone, but got '" << stringify(dim) << "' beside it";
  return success();
}

LogicalResult LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                         function_ref<InFlightDiagnostic()> emitError) const {
  const LinearLayout &layout = getLayout();
  if (layout.shape() != shape)
    return emitError() << "expected a layout of shape [" << shape << "], but got [" << layout.shape() << "]";
  if (!layout.bases(InDim::Offset).empty())
    return emitError()
           << "expected a layout over registers, lanes and warps, but got one over offsets in shared memory";
  if (layout.bases(InDim::Lane).size() != 5)
    return emitError() << "expected 5 bases of 'lane', but got " << layout.bases(InDim::Lane).size();
  return success();
}

void LayoutAttr::print(AsmPrinter &printer) const { printer << "<" << getLayout().str() << ">"; }

/// A list of powers of two in brackets.
static FailureOr<SmallVector<int64_t>> parseShape(AsmParser &parser) {
  SmallVector<int64_t> shape;
  SMLoc where = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     [&] { return parser.parseInteger(shape.emplace_back()); }))
    return failure();
  int64_t elements = 1;
  for (int64_t size : shape) {
    if (size < 1 || !llvm::isPowerOf2_64(size) || size > (int64_t(1) << 30))
      return parser.emitError(where) << "expected sizes that are powers of two, but got " << size;
    elements *= size;
    if (elements > (int64_t(1) << 30))
      return parser.emitError(where) << "expected at most 2^30 elements";
  }
  return shape;
}

static ParseResult parseBases(AsmParser &parser, LinearLayout &layout, InDim dim) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
    SmallVector<int64_t> coordinates;
    SMLoc where = parser.getCurrentLocation();
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                       [&] { return parser.parseInteger(coordinates.emplace_back()); }))
      return failure();
    if (coordinates.size() != layout.rank())
      return parser.emitError(where) << "expected " << layout.rank() << " coordinates, but got " << coordinates.size();
    for (auto [axis, coordinate] : llvm::enumerate(coordinates))
      if (coordinate < 0 || coordinate >= layout.shape()[axis])
        return parser.emitError(where) << "expected a coordinate from 0 to " << layout.shape()[axis] - 1
                                       << " along axis " << axis << ", but got " << coordinate;
    if (layout.bases(dim).size() == 30)
      return parser.emitError(where) << "expected at most 30 bases of '" << stringify(dim) << "'";
    layout.append(dim, ArrayRef<int64_t>(coordinates));
    return success();
  });
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<SmallVector<int64_t>> shape = parseShape(parser);
  if (failed(shape))
    return {};
  LinearLayout layout(*shape);
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc where = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name) || parser.parseEqual())
      return {};
    const InDim *dim = llvm::find_if(allInDims, [&](InDim candidate) { return stringify(candidate) == name; });
    if (dim == allInDims.end() || !layout.bases(*dim).empty()) {
      parser.emitError(where) << "expected 'register', 'lane', 'warp', 'block' or 'offset', each once, but got '"
                              << name << "'";
      return {};
    }
    if (parseBases(parser, layout, *dim))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return LayoutAttr::getChecked([&] { return parser.emitError(parser.getNameLoc()); }, parser.getContext(), layout);
}

LayoutAttr weft::warp::layoutAttrOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<LayoutAttr>(tensor.getEncoding()) : LayoutAttr();
}

uint32_t weft::warp::repeatedThreadBits(const LinearLayout &layout, unsigned warps) {
  Place free = layout.freeBits();
  uint32_t missingWarps = (warps - 1) & ~(layout.size(InDim::Warp) - 1);
  return free[InDim::Lane] | (free[InDim::Warp] | missingWarps) << 5;
}

uint32_t weft::warp::repeatedThreadBits(Type type, unsigned warps) {
  LayoutAttr layout = layoutAttrOf(type);
  return layout ? repeatedThreadBits(layout.getLayout(), warps) : 32 * warps - 1;
}

uint32_t weft::warp::bitsOfRun(int32_t run, uint32_t stride, int64_t size) {
  return stride * (static_cast<uint32_t>(std::min<int64_t>(run, size)) - 1);
}

uint32_t weft::warp::equalBits(Operation *op, const LinearLayout &layout) {
  auto runs = op->getAttrOfType<DenseI32ArrayAttr>(constancyAttrName);
  if (!runs)
    return 0;
  uint32_t bits = 0, stride = 1;
  for (unsigned axis = layout.rank(); axis-- > 0;) {
    bits |= bitsOfRun(runs[axis], stride, layout.shape()[axis]);
    stride *= layout.shape()[axis];
  }
  return bits;
}

RankedTensorType weft::warp::withLayout(RankedTensorType type, const LinearLayout &layout) {
  return RankedTensorType::get(type.getShape(), type.getElementType(), LayoutAttr::get(type.getContext(), layout));
}

// Shared memory.

static int64_t productOf(ArrayRef<int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes)
    product *= size;
  return product;
}

int64_t SharedType::getElementBytes() { return llvm::divideCeil(getElementType().getIntOrFloatBitWidth(), 8); }

int64_t SharedType::getTileBytes() {
  if (getMargin())
    return getRuns() * getRunPitch() + getMarginBytes();
  return productOf(getShape()) * getElementBytes();
}

int64_t SharedType::getLinePitch() {
  constexpr int64_t pieceBytes = 16;
  return getLineBytes() + (getLineBytes() > pieceBytes ? pieceBytes : 0);
}

int64_t SharedType::getRunPitch() { return (getShape()[getShape().size() - 2] + getMargin()) * getLinePitch(); }

int64_t SharedType::getRuns() { return productOf(getShape().drop_back(2)); }

/// Why a tile has no such margin; empty where it may.
static StringRef whyNoMargin(int64_t margin, int64_t stages, const LinearLayout &layout) {
  if (margin < 0 || layout.rank() < 2 || margin > layout.shape()[layout.rank() - 2])
    return "at least two axes, and a margin of at most the size of the last but one";
  if (stages != 1)
    return "one stage of a tile with a margin";
  for (auto [bit, basis] : llvm::enumerate(layout.bases(InDim::Offset)))
    if (basis != 1u << bit)
      return "offsets in row-major order of a tile with a margin";
  return "";
}

LogicalResult SharedType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t stages, ArrayRef<int64_t> shape,
                                 Type elementType, LayoutAttr layout, int64_t margin) {
  if (stages < 1)
    return emitError() << "expected at least one stage, but got " << stages;
  if (!elementType.isIntOrFloat())
    return emitError() << "expected elements that are integers or floats, but got " << elementType;
  const LinearLayout &linear = layout.getLayout();
  if (linear.shape() != shape)
    return emitError() << "expected a layout of shape [" << shape << "], but got [" << linear.shape() << "]";
  if (linear.size(InDim::Offset) != linear.numElements() || !linear.isSurjective() ||
      (linear.numElements() > 1 && linear.bases(InDim::Offset).empty()))
    return emitError() << "expected a layout that gives each element one offset, but got " << layout;
  if (StringRef why = margin ? whyNoMargin(margin, stages, linear) : ""; !why.empty())
    return emitError() << "expected " << why << ", but got a margin of " << margin << ", " << stages << " stages and "
                       << layout;
  return success();
}

Type SharedType::parse(AsmParser &parser) {
  int64_t stages = 1, margin = 0;
  SmallVector<int64_t> shape;
  Type element;
  LayoutAttr layout;
  if (parser.parseLess())
    return {};
  if (succeeded(parser.parseOptionalKeyword("stages")))
    if (parser.parseEqual() || parser.parseInteger(stages) || parser.parseComma())
      return {};
  if (parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(element) || parser.parseComma() ||
      parser.parseAttribute(layout))
    return {};
  if (succeeded(parser.parseOptionalComma()))
    if (parser.parseKeyword("margin") || parser.parseEqual() || parser.parseInteger(margin))
      return {};
  if (parser.parseGreater())
    return {};
  return SharedType::getChecked([&] { return parser.emitError(parser.getNameLoc()); }, parser.getContext(), stages,
                                shape, element, layout, margin);
}

void SharedType::print(AsmPrinter &printer) const {
  printer << "<";
  if (getStages() != 1)
    printer << "stages = " << getStages() << ", ";
  for (int64_t size : getShape())
    printer << size << "x";
  printer << getElementType() << ", " << getLayout();
  if (getMargin())
    printer << ", margin = " << getMargin();
  printer << ">";
}
