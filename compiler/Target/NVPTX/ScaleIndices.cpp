// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See ScaleIndices.h. Of a pointer to elements of 2 bytes, at a sequence's number times a stride:
//
//   %z = zext i32 %sequence to i64             %t = shl i32 %sequence, 1
//   %p = mul i64 %z, %stride            ─▶     %z = zext i32 %t to i64            mul.wide.u32  %z, %sequence, 2
//   %a = getelementptr half, ptr %x, %p        %p = mul i64 %z, %stride
//                                              %a = getelementptr i8, ptr %x, %p  mad.lo.s64    %a, %z, %stride, %x
//
// As it was, and where the widened number is shifted, the product would be shifted, which is then no part of the
// addition.

#include "compiler/Target/NVPTX/ScaleIndices.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Support/KnownBits.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace weft {

/// A widened number times a power of two, shifted before it is widened; null where it is none or a bit may be lost.
static Value *scaled(Value *widened, uint64_t bits, IRBuilder<> &builder, const DataLayout &layout) {
  Value *number;
  if (!match(widened, m_ZExt(m_Value(number))) || computeKnownBits(number, layout).countMinLeadingZeros() < bits)
    return nullptr;
  return builder.CreateZExt(builder.CreateShl(number, bits, "", /*HasNUW=*/true), widened->getType());
}

/// Gives a product its factors that are shifted behind the widening anew.
static void scaleFactors(Instruction &product, const DataLayout &layout) {
  IRBuilder<> builder(&product);
  for (unsigned operand : {0, 1}) {
    Value *widened;
    uint64_t bits;
    if (match(product.getOperand(operand), m_OneUse(m_Shl(m_Value(widened), m_ConstantInt(bits)))))
      if (Value *factor = scaled(widened, bits, builder, layout))
        product.setOperand(operand, factor);
  }
}

/// Makes an address of elements at a product, which nobody else reads, one of bytes.
static void scaleAddress(GetElementPtrInst &address, const DataLayout &layout) {
  uint64_t bytes = layout.getTypeAllocSize(address.getSourceElementType());
  Value *factors[2];
  if (address.getNumIndices() != 1 || bytes < 2 || !isPowerOf2_64(bytes) ||
      !match(address.idx_begin()->get(), m_OneUse(m_Mul(m_Value(factors[0]), m_Value(factors[1])))))
    return;
  IRBuilder<> builder(&address);
  for (unsigned which : {0, 1}) {
    Value *factor = scaled(factors[which], Log2_64(bytes), builder, layout);
    if (!factor)
      continue;
    Value *place = builder.CreateMul(factor, factors[1 - which]);
    address.replaceAllUsesWith(builder.CreateGEP(builder.getInt8Ty(), address.getPointerOperand(), place));
    address.eraseFromParent();
    return;
  }
}

void scaleIndices(Function &function, const LoopInfo &loops) {
  const DataLayout &layout = function.getDataLayout();
  for (BasicBlock &block : function) {
    if (loops.getLoopFor(&block))
      continue;
    for (Instruction &instruction : make_early_inc_range(block)) {
      if (instruction.getOpcode() == Instruction::Mul)
        scaleFactors(instruction, layout);
      else if (auto *address = dyn_cast<GetElementPtrInst>(&instruction))
        scaleAddress(*address, layout);
    }
  }
}

} // namespace weft
