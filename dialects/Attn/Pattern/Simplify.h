// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Simpler patterns of the same meaning.
#pragma once

#include "dialects/Attn/Pattern/Bands.h"

namespace weft::attn {

/// A pattern with the same pairs, no larger: full ∧ causal is causal, causal ∨ window<left = 0> is full, a window no
/// narrower than the lengths is full, ¬¬P is P, nested conjunctions are one, shifted windows are windows, transposes
/// and `per_head` lists of one pattern are resolved. What is known of the lengths is used, and the outcome holds for
/// them only.
mlir::Attribute simplifyPattern(mlir::Attribute pattern, const Lengths &lengths = {});

} // namespace weft::attn
