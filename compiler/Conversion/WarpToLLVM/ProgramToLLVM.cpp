// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Program indices and barriers.

#include "compiler/Conversion/WarpToLLVM/Program.h"
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace weft {
namespace {

/// The special register of an axis: %ctaid or %nctaid (PTX ISA 10.6, 10.7).
template <typename X, typename Y, typename Z> Value readRegister(tile::Axis axis, Emitter &e) {
  Type i32 = e.b.getI32Type();
  switch (axis) {
  case tile::Axis::X:
    return X::create(e.b, e.loc, i32);
  case tile::Axis::Y:
    return Y::create(e.b, e.loc, i32);
  case tile::Axis::Z:
    return Z::create(e.b, e.loc, i32);
  }
  llvm_unreachable("every axis has a register");
}

} // namespace

Value programId(tile::Axis axis, Emitter &e) {
  return readRegister<NVVM::BlockIdXOp, NVVM::BlockIdYOp, NVVM::BlockIdZOp>(axis, e);
}

void addProgramLowerings(LoweringTable &table) {
  table.add<tile::ProgramIdOp>([](tile::ProgramIdOp op, Emitter &e) {
    e.bind(op.getResult(), programId(op.getAxis(), e));
    return success();
  });
  table.add<tile::NumProgramsOp>([](tile::NumProgramsOp op, Emitter &e) {
    e.bind(op.getResult(), readRegister<NVVM::GridDimXOp, NVVM::GridDimYOp, NVVM::GridDimZOp>(op.getAxis(), e));
    return success();
  });
  table.add<tile::BarrierOp>([](tile::BarrierOp, Emitter &e) {
    e.barrier();
    return success();
  });
}

} // namespace weft
