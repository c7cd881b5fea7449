// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Verifiers of the ops in AttnTensorOps.td.
#include "dialects/Attn/IR/AttnOps.h"

using namespace mlir;
using namespace weft::attn;

void MapOp::build(OpBuilder &b, OperationState &state, TypeRange results, ValueRange inputs,
                  function_ref<SmallVector<Value>(ImplicitLocOpBuilder &, ValueRange)> body) {
  state.addOperands(inputs);
  state.addTypes(results);
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(state.addRegion());
  for (Value input : inputs)
    block->addArgument(scalarTypeOf(cast<WholeTensorType>(input.getType())), input.getLoc());
  ImplicitLocOpBuilder scalars(state.location, b);
  scalars.setInsertionPointToStart(block);
  SmallVector<Value> yielded = body(scalars, block->getArguments());
  YieldOp::create(scalars, yielded);
}

LogicalResult MapOp::verify() { return success(); }
LogicalResult MapOp::verifyRegions() { return success(); }
LogicalResult ElementOp::verify() { return success(); }
LogicalResult SumOp::verify() { return success(); }
LogicalResult ConvolveOp::verify() { return success(); }
LogicalResult RopeOp::verify() { return success(); }
