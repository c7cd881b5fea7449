// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See ConstantsLast.h. An element's index is where its block begins, and the place within, of which the lane gives some
// bits and the register the others: start + (lane | 8). Of what is the same in several elements of a thread, as
// index >> 4 is, LLVM sees that it is the same only if the bits that tell them apart come last.
#include "compiler/Target/NVPTX/ConstantsLast.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace weft {

/// The sum of a value and a constant that an operand is.
struct Offset {
  Value *value = nullptr;
  ConstantInt *constant = nullptr;
};

static Offset offsetOf(Value *operand) {
  Offset found;
  if (match(operand, m_AddLike(m_Value(found.value), m_ConstantInt(found.constant))) && !isa<Constant>(found.value))
    return found;
  return {};
}

void addConstantsLast(Function &function) {
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    Value *left, *right;
    if (!match(&instruction, m_AddLike(m_Value(left), m_Value(right))) || isa<Constant>(right))
      continue;
    Offset offset = offsetOf(right);
    if (!offset.value) {
      std::swap(left, right);
      offset = offsetOf(right);
    }
    if (!offset.value)
      continue;
    auto *sum = BinaryOperator::CreateAdd(left, offset.value, "", instruction.getIterator());
    auto *last = BinaryOperator::CreateAdd(sum, offset.constant, "", instruction.getIterator());
    for (BinaryOperator *made : {sum, last})
      made->setDebugLoc(instruction.getDebugLoc());
    instruction.replaceAllUsesWith(last);
    instruction.eraseFromParent();
  }
}

} // namespace weft
