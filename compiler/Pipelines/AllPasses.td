// Part of Weft. SPDX-License-Identifier: Apache-2.0
// All passes of the compiler, for their reference, docs/reference/Passes.md.
#ifndef WEFT_COMPILER_PIPELINES_ALLPASSES_TD
#define WEFT_COMPILER_PIPELINES_ALLPASSES_TD

include "compiler/Conversion/AttnToTile/Passes.td"
include "compiler/Conversion/TileToWarp/Passes.td"
include "compiler/Conversion/WarpToLLVM/Passes.td"
include "compiler/Differentiate/Passes.td"
include "dialects/Attn/Transforms/Passes.td"
include "dialects/Tile/Transforms/Passes.td"
include "dialects/Warp/Transforms/Passes.td"

#endif // WEFT_COMPILER_PIPELINES_ALLPASSES_TD
