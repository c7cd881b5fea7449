// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A program with f32 in the place of every narrower float. Results of a program are held against it where nobody has
// written the same mechanism in wider arithmetic.
//
//   %s = arith.extf %x : f16 to f32                  ─▶   (%x itself)
//   attn.map ins(%a : !attn.tensor<[N, 64], f16>)    ─▶   attn.map ins(%a : !attn.tensor<[N, 64], f32>)
#include "compiler/CAPI/Programs.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;

/// An f32 attribute of the same number.
static std::optional<Attribute> widened(FloatAttr attribute) {
  if (!attribute.getType().isF16() && !attribute.getType().isBF16())
    return std::nullopt;
  return FloatAttr::get(Float32Type::get(attribute.getContext()), attribute.getValueAsDouble());
}

void weft::capi::widenFloats(ModuleOp module) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](FloatType type) -> std::optional<std::pair<Type, WalkResult>> {
    if (!type.isF16() && !type.isBF16())
      return std::nullopt;
    return std::pair<Type, WalkResult>(Float32Type::get(type.getContext()), WalkResult::advance());
  });
  replacer.addReplacement([](FloatAttr attribute) -> std::optional<std::pair<Attribute, WalkResult>> {
    std::optional<Attribute> wide = widened(attribute);
    if (!wide)
      return std::nullopt;
    return std::pair<Attribute, WalkResult>(*wide, WalkResult::skip());
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
  module.walk([](Operation *op) {
    if (isa<arith::ExtFOp, arith::TruncFOp>(op) && op->getOperand(0).getType() == op->getResult(0).getType()) {
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
    }
  });
}
