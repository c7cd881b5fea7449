// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How each op goes about tensors in pieces.
#pragma once

#include "mlir/Transforms/DialectConversion.h"

namespace weft::tile {

/// Ops that only move elements, and constants.
void populateSplitShapeOps(const mlir::TypeConverter &converter, mlir::RewritePatternSet &patterns);

/// Ops whose results are made of several elements.
void populateSplitCombiningOps(const mlir::TypeConverter &converter, mlir::RewritePatternSet &patterns);

/// Whether a combiner's region can be applied to tensors, element by element.
bool isElementwise(mlir::Region &combiner);

} // namespace weft::tile
