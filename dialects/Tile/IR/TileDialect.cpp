// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Registration of the tile dialect, its types and attributes, and the checks of the discardable attributes it defines.
#include "dialects/Tile/IR/TileDialect.h"
#include "dialects/Tile/IR/TileOps.h"
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
}

Operation *TileDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

LogicalResult PointerType::verify(function_ref<InFlightDiagnostic()> emitError, Type pointee) {
  if (isa<PointerType>(pointee))
    return success();
  if (pointee.isIntOrFloat()) {
    unsigned width = pointee.getIntOrFloatBitWidth();
    if (llvm::is_contained({1u, 8u, 16u, 32u, 64u}, width))
      return success();
  }
  return emitError() << "expected a pointer to an integer or float of 1, 8, 16, 32 or 64 bits, or to a pointer, but got " << pointee;
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError, int32_t warps, int32_t stages) {
  if (warps < 1 || warps > 32 || !llvm::isPowerOf2_32(warps))
    return emitError() << "expected 'warps' to be a power of two from 1 to 32, but got " << warps;
  if (stages < 1)
    return emitError() << "expected 'stages' to be at least 1, but got " << stages;
  return success();
}

LogicalResult TileDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == kernelAttrName || name == scheduleAttrName) {
    if (!isa<func::FuncOp>(op))
      return op->emitOpError() << "expected '" << name << "' on a 'func.func'";
    if (name == kernelAttrName && !isa<UnitAttr>(attribute.getValue()))
      return op->emitOpError() << "expected '" << name << "' to be a unit attribute, but got " << attribute.getValue();
    if (name == scheduleAttrName && !isa<ScheduleAttr>(attribute.getValue()))
      return op->emitOpError() << "expected '" << name << "' to be a '#tile.schedule', but got " << attribute.getValue();
  }
  return success();
}

LogicalResult TileDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index, NamedAttribute attribute) {
  if (attribute.getName() != divisibilityAttrName)
    return success();
  auto value = dyn_cast<IntegerAttr>(attribute.getValue());
  if (!value || !value.getType().isInteger(32) || value.getInt() < 1)
    return op->emitOpError() << "expected '" << divisibilityAttrName << "' of argument " << index
                             << " to be a positive i32, but got " << attribute.getValue();
  return success();
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
