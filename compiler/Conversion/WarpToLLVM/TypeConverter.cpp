// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Which LLVM type a register of a value has, and how many registers hold it.

#include "compiler/Conversion/WarpToLLVM/Emitter.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace weft {

Type registerType(Type type) {
  MLIRContext *context = type.getContext();
  return llvm::TypeSwitch<Type, Type>(type)
      .Case([](RankedTensorType tensor) { return registerType(tensor.getElementType()); })
      .Case([&](tile::PointerType) { return LLVM::LLVMPointerType::get(context, /*addressSpace=*/1); })
      .Case([&](warp::SharedType) { return LLVM::LLVMPointerType::get(context, /*addressSpace=*/3); })
      .Case([&](warp::TensorMapType) { return LLVM::LLVMPointerType::get(context); })
      .Case([&](IndexType) { return IntegerType::get(context, 64); })
      .Case([](IntegerType integer) { return integer.getWidth() <= 64 ? Type(integer) : Type(); })
      .Case<Float8E4M3FNType, Float8E5M2Type>([&](Type) { return IntegerType::get(context, 8); })
      .Case<Float16Type, BFloat16Type, Float32Type, Float64Type>([](Type floating) { return floating; })
      .Default([](Type) { return Type(); });
}

std::optional<unsigned> registerCount(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return 1;
  auto layout = dyn_cast_or_null<warp::LayoutAttr>(tensor.getEncoding());
  if (!layout)
    return std::nullopt;
  return layout.getLayout().size(warp::InDim::Register);
}

const warp::LinearLayout &layoutOf(Type tensor) {
  return cast<warp::LayoutAttr>(cast<RankedTensorType>(tensor).getEncoding()).getLayout();
}

} // namespace weft
