// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What a program asks of its sizes beside what types say: a table of blocks reaches every query and key.
//
//   func.func @f(...) attributes {attn.program, attn.requires = [{size = "64*R", at_least = "N", what = "'bits' to have blocks of 64 for all queries"}]}
#pragma once

#include "dialects/Attn/IR/AttnDialect.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace weft::attn {

/// On a program: an array of dictionaries of three strings. `size` and `at_least` are expressions over the symbols of
/// its arguments' types, of which the first is to be no less than the second; `what` says in words what was expected.
/// Plans have them as `requires` (docs/LibraryFormat.md), and the runtime refuses a run that does not keep to one.
inline constexpr llvm::StringLiteral requiresAttrName = "attn.requires";

/// The words of `requiresAttrName`'s entries, in a plan too.
inline constexpr llvm::StringLiteral requirementKeys[] = {"size", "at_least", "what"};

} // namespace weft::attn
