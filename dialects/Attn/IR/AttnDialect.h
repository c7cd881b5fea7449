// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The attn dialect's class, its types, attributes and enumerations.
#pragma once

#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/Types.h"

#include "dialects/Attn/IR/AttnDialect.h.inc"
#include "dialects/Attn/IR/AttnEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Attn/IR/AttnTypes.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Attn/IR/AttnAttrs.h.inc"

namespace weft::attn {

/// On a `func.func`: it is a program.
inline constexpr llvm::StringLiteral programAttrName = "attn.program";
/// On a program's argument or result: its name, a string.
inline constexpr llvm::StringLiteral nameAttrName = "attn.name";
/// On a program's argument: its address and its strides are multiples of 16 bytes.
inline constexpr llvm::StringLiteral alignedAttrName = "attn.aligned";
/// On a program's argument of one axis of i32: it says where packed sequences start, so that its numbers rise from 0 to
/// a number of tokens. An array of strings, expressions over the sizes of arguments, each such a number.
inline constexpr llvm::StringLiteral startsAttrName = "attn.starts";

/// On a program's argument, a unit: an attention that read it had no pair left, and is no more. Its gradient is zero
/// where nothing else gives it one.
inline constexpr llvm::StringLiteral leftOutAttrName = "attn.left_out";

/// On a backward function: the numbers of the program's arguments whose gradients it returns, an i64 array.
inline constexpr llvm::StringLiteral gradientsOfAttrName = "attn.gradients_of";

/// On an `attn.attend` and the `attn.attend_backward` that it gave rise to: which attention of the program it is, i64.
inline constexpr llvm::StringLiteral numberAttrName = "attn.number";

/// On a kernel, from attn-to-tile to attn-merge-launches: it may share a launch with others that may, whatever they
/// hold.
inline constexpr llvm::StringLiteral sharesLaunchAttrName = "attn.shares_launch";

/// Whether an attribute is a pattern of this dialect.
bool isPattern(mlir::Attribute attribute);

/// A size as an integer times a symbol: "4*H" is (4, "H"), "H" (1, "H"), "12" (12, ""). Any other expression is a
/// symbol of its own.
std::pair<int64_t, llvm::StringRef> factorsOf(llvm::StringRef size);

/// How many heads of `result` share one of `operand`: 1 where the sizes are spelled alike, the ratio where it is an
/// integer: of "4*H" and "2*H", or of two integers; nothing otherwise.
std::optional<int64_t> headGroup(llvm::StringRef result, llvm::StringRef operand);

/// A size divided by what divides it: "12*H" by 4 is "3*H".
std::string dividedSize(llvm::StringRef size, int64_t by);

/// Whether a tensor of type `from` stands where one of `to`'s shape is expected in `attn.map`: aligned at the last
/// axis, with sizes of 1 repeated, and, on axis 1 of 4, heads shared by groups.
bool broadcastsTo(WholeTensorType from, WholeTensorType to);

/// The scalar type in which regions compute on a tensor's elements: floats as f32, i1 as i1, other integers as i32.
mlir::Type scalarTypeOf(WholeTensorType type);

/// Whether elements are 8-bit floats, which memory holds and nothing is computed on.
bool isFloat8(mlir::Type element);
/// Whether a tensor's elements are numbers that gradients exist for: floats of 16 bits or more.
bool hasGradient(WholeTensorType type);

} // namespace weft::attn
