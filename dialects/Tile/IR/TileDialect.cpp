// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Registration of the tile dialect, its types and attributes, and the checks of the discardable attributes it defines.
//
//   func.func @f(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}) attributes {tile.kernel}    accepted
//   func.func @f(%x: tensor<4xf16>) attributes {tile.kernel}                                    no launch passes a tensor
//   func.func @f(%n: i32) -> i32 attributes {tile.kernel}                                       no launch takes a result
#include "dialects/Tile/IR/TileDialect.h"
#include "dialects/Tile/IR/DotSums.h"
#include "dialects/Tile/IR/LoopAttributes.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Tile/IR/TileProgramOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft::tile;

#include "dialects/Tile/IR/TileDialect.cpp.inc"
#include "dialects/Tile/IR/TileEnums.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Tile/IR/TileTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Tile/IR/TileAttrs.cpp.inc"

void TileDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Tile/IR/TileTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Tile/IR/TileAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Tile/IR/TileOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Tile/IR/TileProgramOps.cpp.inc"
      >();
}

Operation *TileDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

/// Whether a pointer may point to, and a kernel may take, a value of this type.
static bool isScalar(Type type) {
  if (!type.isIntOrFloat())
    return isa<PointerType>(type);
  return (type.isSignlessInteger() || isa<FloatType>(type)) &&
         llvm::is_contained({1u, 8u, 16u, 32u, 64u}, type.getIntOrFloatBitWidth());
}

LogicalResult PointerType::verify(function_ref<InFlightDiagnostic()> emitError, Type pointee) {
  if (isScalar(pointee))
    return success();
  return emitError()
         << "expected a pointer to an integer or float of 1, 8, 16, 32 or 64 bits, or to a pointer, but got "
         << pointee;
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError, int32_t warps, int32_t stages,
                                   int32_t cluster, bool persistent) {
  if (warps < 1 || warps > 32 || !llvm::isPowerOf2_32(warps))
    return emitError() << "expected 'warps' to be a power of two from 1 to 32, but got " << warps;
  if (stages < 1)
    return emitError() << "expected 'stages' to be at least 1, but got " << stages;
  if (cluster < 1 || cluster > 8 || !llvm::isPowerOf2_32(cluster))
    return emitError() << "expected 'cluster' to be 1, 2, 4 or 8, but got " << cluster;
  if (persistent && cluster > 1)
    return emitError() << "expected no cluster of a persistent kernel, but got " << cluster;
  return success();
}

/// What a kernel is: a function with a body over pointers and scalars that gives nothing back.
static LogicalResult verifyKernel(func::FuncOp kernel) {
  if (kernel.isExternal())
    return kernel.emitOpError() << "expected a kernel with a body, but got a declaration";
  if (kernel.getNumResults() != 0)
    return kernel.emitOpError() << "expected a kernel without results, but got " << kernel.getResultTypes().front();
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes()))
    if (!isScalar(type)) {
      InFlightDiagnostic diagnostic = kernel.emitOpError() << "expected argument " << index
                                                           << " to be a pointer or a scalar, but got " << type;
      diagnostic.attachNote() << "pass a '!tile.ptr' and load from it, or a scalar of 1, 8, 16, 32 or 64 bits";
      return diagnostic;
    }
  return success();
}

static bool isPromise(StringRef name) {
  return name == divisibilityAttrName || name == contiguityAttrName || name == constancyAttrName;
}

static bool isPositive(Attribute value) {
  auto one = dyn_cast<IntegerAttr>(value);
  return one && one.getType().isInteger(32) && one.getInt() > 0;
}

/// A promise about an op's result: one positive i32, or one for each axis.
static LogicalResult verifyPromise(Operation *op, NamedAttribute attribute) {
  auto many = dyn_cast<DenseI32ArrayAttr>(attribute.getValue());
  if (isPositive(attribute.getValue()) || (many && llvm::all_of(many.asArrayRef(), [](int32_t n) { return n > 0; })))
    return success();
  return op->emitOpError() << "expected '" << attribute.getName().getValue()
                           << "' to be a positive i32 or an array of them, but got " << attribute.getValue();
}

/// Whether an op is a product of 8-bit floats.
static bool isOfFloat8(Operation *op) {
  return isa<DotOp>(op) && isa<Float8E4M3FNType, Float8E5M2Type>(elementTypeOf(op->getOperand(0).getType()));
}

LogicalResult TileDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (isPromise(name))
    return verifyPromise(op, attribute);
  if (name == numStagesAttrName || name == unrollFactorAttrName) {
    if (isa<scf::ForOp>(op) && isPositive(attribute.getValue()))
      return success();
    return op->emitOpError() << "expected '" << name << "' on an 'scf.for' to be a positive i32, but got "
                             << attribute.getValue();
  }
  if (name == fewIterationsAttrName || name == warpSpecializeAttrName) {
    if (isa<scf::ForOp>(op) && isa<UnitAttr>(attribute.getValue()))
      return success();
    return op->emitOpError() << "expected '" << name << "' to be a unit attribute of an 'scf.for'";
  }
  if (name == leavesRowsAttrName) {
    if (isa<arith::SelectOp>(op) && isa<UnitAttr>(attribute.getValue()))
      return success();
    return op->emitOpError() << "expected '" << name << "' to be a unit attribute of an 'arith.select'";
  }
  if (name == wrapsUnreadAttrName) {
    if (isa<arith::RemSIOp, arith::RemUIOp, arith::SelectOp, arith::MinSIOp>(op) && isa<UnitAttr>(attribute.getValue()))
      return success();
    return op->emitOpError() << "expected '" << name << "' to be a unit attribute of what may wrap indices";
  }
  if (name == impreciseSumsAttrName) {
    if (isOfFloat8(op) && isa<UnitAttr>(attribute.getValue()))
      return success();
    return op->emitOpError() << "expected '" << name << "' to be a unit on a 'tile.dot' of 8-bit floats";
  }
  if (name != kernelAttrName && name != scheduleAttrName && name != ordersAccessesAttrName) {
    InFlightDiagnostic diagnostic = op->emitOpError()
                                    << "expected an attribute that the tile dialect knows, but got '" << name << "'";
    diagnostic.attachNote() << "it knows '" << kernelAttrName << "', '" << scheduleAttrName << "', '"
                            << ordersAccessesAttrName << "', '" << numStagesAttrName << "', '" << unrollFactorAttrName
                            << "', '" << fewIterationsAttrName << "', '" << warpSpecializeAttrName << "', '"
                            << leavesRowsAttrName << "', '" << wrapsUnreadAttrName << "', '" << impreciseSumsAttrName
                            << "', '" << divisibilityAttrName << "', '" << contiguityAttrName << "' and '"
                            << constancyAttrName << "'";
    return diagnostic;
  }
  auto function = dyn_cast<func::FuncOp>(op);
  if (!function)
    return op->emitOpError() << "expected '" << name << "' on a 'func.func', but got it on '" << op->getName() << "'";
  if (name == scheduleAttrName) {
    if (isa<ScheduleAttr>(attribute.getValue()))
      return success();
    return op->emitOpError() << "expected '" << name << "' to be a '#tile.schedule', but got " << attribute.getValue();
  }
  if (!isa<UnitAttr>(attribute.getValue()))
    return op->emitOpError() << "expected '" << name << "' to be a unit attribute, but got " << attribute.getValue();
  return name == kernelAttrName ? verifyKernel(function) : success();
}

LogicalResult TileDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (!isPromise(name))
    return op->emitOpError() << "expected an attribute of argument " << index
                             << " that the tile dialect knows, but got '" << name << "'";
  if (!isPositive(attribute.getValue()))
    return op->emitOpError() << "expected '" << name << "' of argument " << index << " to be a positive i32, but got "
                             << attribute.getValue();
  // Addresses are not checked by type: those of a lowered function are another dialect's.
  Type type = cast<FunctionOpInterface>(op).getArgumentTypes()[index];
  if (!isa<FloatType, ShapedType>(type))
    return success();
  return op->emitOpError() << "expected '" << name << "' on an integer or a pointer, but got it on argument " << index
                           << " of type " << type;
}

Type weft::tile::elementTypeOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getElementType() : type;
}

ArrayRef<int64_t> weft::tile::shapeOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getShape() : ArrayRef<int64_t>();
}

Type weft::tile::withElementType(Type type, Type element) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? Type(tensor.clone(element)) : element;
}

Type weft::tile::pointeeTypeOf(Type type) { return cast<PointerType>(elementTypeOf(type)).getPointee(); }

std::string weft::tile::textOf(ArrayRef<int64_t> shape, Type element) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (int64_t size : shape)
    stream << size << "x";
  stream << element;
  return text;
}

std::string weft::tile::textOf(Type tensor) {
  Type element = elementTypeOf(tensor);
  return textOf(shapeOf(tensor), isa<PointerType>(element) ? pointeeTypeOf(tensor) : element);
}
