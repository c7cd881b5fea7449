// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The values of a backward function while it is written: gradients so far, and the program's values it needs again.
#pragma once

#include "dialects/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace weft {

/// On a program's argument, a unit: nobody asks for its gradient. It is a constant to the backward function.
inline constexpr llvm::StringLiteral constantAttrName = "attn.constant";

/// A value of the program that the forward function returns for the backward.
struct SavedValue {
  mlir::Value value;          ///< a result of an op of the program
  attn::WholeTensorType type; ///< as it is stored: an output is rounded to its values' element type
  std::string name;           ///< of the backward's argument
};

/// Gradients by value of the program, accumulated. Everything is written at the end of the backward function.
class Gradients {
public:
  /// `backward` has one block, whose arguments are the program's and then the gradients of its results.
  Gradients(mlir::func::FuncOp program, mlir::func::FuncOp backward, bool fast);

  mlir::ImplicitLocOpBuilder b; ///< writes at the end of the backward function
  const bool fast;              ///< whether sums may be taken in an order that changes from run to run

  /// Whether anything asks for the gradient of `value`: it depends on an argument of floats and results depend on it.
  bool wants(mlir::Value value) const { return uses.count(value); }
  /// The element type in which a contribution to a gradient should be made: the value's own where it is the only
  /// contribution to an argument's, which is stored as it is, or to that of what a product with weights makes, which
  /// rounds it; f32 where it is added to others or goes on.
  mlir::Type elementFor(mlir::Value value) const;
  /// Whether one use alone contributes to the gradient of `value`.
  bool isReadOnce(mlir::Value value) const { return uses.lookup(value) == 1; }
  /// The type of such a contribution: the value's shape, and that element.
  attn::WholeTensorType contributionType(mlir::Value value) const;
  /// Adds to the gradient of `value` a tensor whose shape broadcasts to the value's.
  void add(mlir::Value value, mlir::Value contribution);
  /// As `add`, for a tensor of a shape to which the value's broadcasts: it is summed first.
  void addSummed(mlir::Value value, mlir::Value contribution);
  /// The gradient of `value`, in its shape; null where it is zero. In `element`, if given, else in whatever type it
  /// has.
  mlir::Value get(mlir::Value value, mlir::Type element = {});

  /// A value of the program in the backward function: an argument, a saved value, or computed again. Its element type
  /// may be narrower than the program's where it is a saved output.
  mlir::Value primal(mlir::Value value);
  /// Makes the tensors that ops inside `region` read, values of the program, those of the backward function.
  void usePrimals(mlir::Region &region);

  /// What `primal` has asked for, in the order of the backward's arguments after the program's.
  llvm::ArrayRef<SavedValue> saved() const { return savedValues; }

private:
  void findUses(mlir::func::FuncOp program);
  mlir::Value addSavedArgument(mlir::OpResult result);
  /// Whether a value is kept for the backward rather than computed again.
  bool isSaved(mlir::OpResult value);
  /// Whether a value costs more to compute again, from what is kept or given, than to keep.
  bool isCheaperKept(mlir::OpResult value);

  mlir::Block &block;
  unsigned programArguments;
  llvm::DenseMap<mlir::Value, unsigned> uses; ///< how many uses of a wanted value contribute to its gradient
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 2>> terms;
  mlir::IRMapping primals;
  llvm::SmallVector<SavedValue> savedValues;
  llvm::DenseMap<mlir::Value, bool> cheaperKept; ///< of values that were asked for
};

inline attn::WholeTensorType tensorType(mlir::Value value) {
  return mlir::cast<attn::WholeTensorType>(value.getType());
}
/// Whether a tensor has elements that gradients exist for.
inline bool isFloatTensor(mlir::Value value) {
  auto type = mlir::dyn_cast<attn::WholeTensorType>(value.getType());
  return type && attn::hasGradient(type);
}

/// A copy, so that no value is an argument or is returned twice: every result of a program is a tensor of its own.
mlir::Value copyOf(mlir::OpBuilder &b, mlir::Value value, attn::WholeTensorType type);
/// What derivatives are written of: a program of one block without mixers. Else an error at what is not so.
mlir::LogicalResult checkOneBlockWithoutMixers(mlir::func::FuncOp program);

} // namespace weft
