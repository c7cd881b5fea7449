// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Registration of the attn dialect and the checks of the discardable attributes it defines.
//
//   func.func @f(%x: !attn.tensor<[N, 64], f16>) -> !attn.tensor<[N, 64], f32> attributes {attn.program}       accepted
//   func.func @f(%n: i32) attributes {attn.program}                              an argument that is no whole tensor
#include "dialects/Attn/IR/AttnDialect.h"
#include "dialects/Attn/IR/AttentionAttributes.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Attn/IR/Requirements.h"
#include "dialects/Attn/IR/TilingAttributes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FoldInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weft::attn;

#include "dialects/Attn/IR/AttnDialect.cpp.inc"
#include "dialects/Attn/IR/AttnEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Attn/IR/AttnAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Attn/IR/AttnInterfaces.cpp.inc"
#include "dialects/Attn/IR/AttnTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Attn/IR/AttnOps.cpp.inc"

namespace {
/// Constants of a scalar region stay in it when they fold, so that a region can be copied into another function whole.
struct ConstantsStayInRegions : DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;
  bool shouldMaterializeInto(Region *) const final { return true; }
};
} // namespace

void AttnDialect::initialize() {
  addInterfaces<ConstantsStayInRegions>();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Attn/IR/AttnTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Attn/IR/AttnAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Attn/IR/AttnOps.cpp.inc"
      >();
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t columns,
                                   int64_t warps, int64_t stages, int64_t channels, int64_t cluster, bool persistent) {
  for (auto [name, size] : {std::pair("rows", rows), std::pair("columns", columns)})
    if (size < 16 || size > 1024 || !llvm::isPowerOf2_64(size))
      return emitError() << "expected '" << name << "' to be a power of two from 16 to 1024, but got " << size;
  if (warps < 1 || warps > 32 || !llvm::isPowerOf2_64(warps))
    return emitError() << "expected 'warps' to be a power of two from 1 to 32, but got " << warps;
  if (stages < 1)
    return emitError() << "expected 'stages' to be at least 1, but got " << stages;
  if (channels != 0 && (channels < 16 || channels > 4096 || channels % 16 != 0))
    return emitError() << "expected 'channels' to be a multiple of 16 from 16 to 4096, but got " << channels;
  if (cluster < 1 || cluster > 8 || !llvm::isPowerOf2_64(cluster))
    return emitError() << "expected 'cluster' to be 1, 2, 4 or 8, but got " << cluster;
  if (persistent && cluster > 1)
    return emitError() << "expected no cluster of a persistent kernel, but got " << cluster;
  return success();
}

/// `attn.gradients_of` = [0, 2]: as many arguments of the backward function as it returns gradients, in ascending
/// order.
static LogicalResult verifyGradientsOf(Operation *op, Attribute value) {
  auto function = dyn_cast<func::FuncOp>(op);
  auto numbers = dyn_cast<DenseI64ArrayAttr>(value);
  if (!function || !numbers)
    return op->emitOpError() << "expected '" << gradientsOfAttrName << "' to be an i64 array on a 'func.func', but got "
                             << value << " on '" << op->getName() << "'";
  if (numbers.size() != function.getNumResults())
    return op->emitOpError() << "expected '" << gradientsOfAttrName << "' to number one argument for each of "
                             << function.getNumResults() << " results, but got " << numbers.size();
  int64_t next = 0;
  for (int64_t number : numbers.asArrayRef()) {
    if (number < next || number >= function.getNumArguments())
      return op->emitOpError() << "expected '" << gradientsOfAttrName << "' to ascend from 0 to "
                               << function.getNumArguments() - 1 << ", but got " << numbers;
    next = number + 1;
  }
  return success();
}

/// Whether an attribute is two integers: rows and warps.
static bool isTiling(Attribute attribute) {
  auto numbers = dyn_cast_or_null<DenseI64ArrayAttr>(attribute);
  return numbers && numbers.size() == 2;
}

static LogicalResult verifyTilings(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == tilingChoicesAttrName) {
    auto choices = dyn_cast<DictionaryAttr>(attribute.getValue());
    if (isa<ModuleOp>(op) && choices &&
        llvm::all_of(choices, [](NamedAttribute each) { return isTiling(each.getValue()); }))
      return success();
    return op->emitOpError() << "expected '" << tilingChoicesAttrName
                             << "' to have rows and warps by kernel, on a module, but got " << attribute.getValue();
  }
  auto isNoted = [](Attribute each) {
    auto facts = dyn_cast<DictionaryAttr>(each);
    return facts && facts.getAs<StringAttr>("place") && isTiling(facts.get("tiling")) &&
           facts.getAs<DenseI64ArrayAttr>("rows") && facts.getAs<DenseI64ArrayAttr>("warps");
  };
  auto noted = dyn_cast<ArrayAttr>(attribute.getValue());
  if (isa<func::FuncOp>(op) && noted && llvm::all_of(noted, isNoted))
    return success();
  return op->emitOpError() << "expected '" << tilingsAttrName
                           << "' to have place, tiling, rows and warps of kernels, on a program, but got "
                           << attribute.getValue();
}

static LogicalResult verifyRequires(Operation *op, Attribute value) {
  auto isRequirement = [](Attribute each) {
    auto facts = dyn_cast<DictionaryAttr>(each);
    return facts && llvm::all_of(requirementKeys, [&](StringRef key) { return facts.getAs<StringAttr>(key); });
  };
  auto requirements = dyn_cast<ArrayAttr>(value);
  if (isa<func::FuncOp>(op) && requirements && llvm::all_of(requirements, isRequirement))
    return success();
  return op->emitOpError() << "expected '" << requiresAttrName
                           << "' to have 'size', 'at_least' and 'what', strings, of each requirement, on a program, "
                              "but got "
                           << value;
}

LogicalResult AttnDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == gradientsOfAttrName)
    return verifyGradientsOf(op, attribute.getValue());
  if (attribute.getName() == numberAttrName) {
    auto number = dyn_cast<IntegerAttr>(attribute.getValue());
    if (isa<AttendOp, AttendBackwardOp>(op) && number && number.getType().isInteger(64) && number.getInt() >= 0)
      return success();
    return op->emitOpError() << "expected '" << numberAttrName
                             << "' to be an i64 of at least 0 on an attention, but got " << attribute.getValue()
                             << " on '" << op->getName() << "'";
  }
  if (StringRef name = attribute.getName(); name == fastAttrName || name == float8AttrName) {
    if (isa<SoftmaxOp, AttendOp>(op) && isa<UnitAttr>(attribute.getValue()))
      return success();
    return op->emitOpError() << "expected '" << name << "' to be a unit on an attention or its mixer, but got "
                             << attribute.getValue() << " on '" << op->getName() << "'";
  }
  if (attribute.getName() == sharesLaunchAttrName && isa<UnitAttr>(attribute.getValue()))
    return success();
  if (attribute.getName() == tilingChoicesAttrName || attribute.getName() == tilingsAttrName)
    return verifyTilings(op, attribute);
  if (attribute.getName() == requiresAttrName)
    return verifyRequires(op, attribute.getValue());
  if (attribute.getName() != programAttrName)
    return op->emitOpError() << "expected an attribute that the attn dialect knows, but got '"
                             << attribute.getName().getValue() << "'";
  auto function = dyn_cast<func::FuncOp>(op);
  if (!function)
    return op->emitOpError() << "expected '" << programAttrName << "' on a 'func.func', but got it on '"
                             << op->getName() << "'";
  for (Type type : llvm::concat<const Type>(function.getArgumentTypes(), function.getResultTypes()))
    if (!isa<WholeTensorType>(type))
      return op->emitOpError() << "expected a program over attn tensors, but got " << type;
  return success();
}

static LogicalResult verifyStarts(Operation *op, unsigned index, Attribute value) {
  auto function = dyn_cast<func::FuncOp>(op);
  auto type = function ? dyn_cast<WholeTensorType>(function.getArgumentTypes()[index]) : WholeTensorType();
  if (!type || type.getRank() != 1 || !type.getElementType().isInteger(32))
    return op->emitOpError() << "expected '" << startsAttrName
                             << "' on an attn tensor of one axis of i32, but got it on "
                             << "argument " << index;
  auto tokens = dyn_cast<ArrayAttr>(value);
  if (tokens && !tokens.empty() && llvm::all_of(tokens, llvm::IsaPred<StringAttr>))
    return success();
  return op->emitOpError() << "expected '" << startsAttrName << "' on argument " << index
                           << " to be strings, numbers of tokens, but got " << value;
}

LogicalResult AttnDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == startsAttrName)
    return verifyStarts(op, index, attribute.getValue());
  if (name == nameAttrName && isa<StringAttr>(attribute.getValue()))
    return success();
  bool isKnown = name == alignedAttrName || name == leftOutAttrName || name == "attn.constant";
  if (isKnown && isa<UnitAttr>(attribute.getValue()))
    return success();
  return op->emitOpError() << "expected '" << nameAttrName << "', a string, or the unit '" << alignedAttrName << "', '"
                           << leftOutAttrName << "' or 'attn.constant' on argument " << index << ", but got '" << name
                           << "' = " << attribute.getValue();
}

LogicalResult AttnDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index,
                                                       NamedAttribute attribute) {
  if (attribute.getName() == nameAttrName && isa<StringAttr>(attribute.getValue()))
    return success();
  return op->emitOpError() << "expected '" << nameAttrName << "', a string, on result " << index << ", but got '"
                           << attribute.getName().getValue() << "' = " << attribute.getValue();
}
