// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What every op of the tile dialect begins with.
#ifndef WEFT_DIALECTS_TILE_IR_TILEOPBASE_TD
#define WEFT_DIALECTS_TILE_IR_TILEOPBASE_TD

include "dialects/Tile/IR/TileTypes.td"
include "dialects/Tile/IR/TileAttrs.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferIntRangeInterface.td"

/// Every tensor that an op takes or gives has at least one axis, sizes of at least 1, and at most 2^20 elements.
def Tile_SizedTensors : NativeOpTrait<"SizedTensors"> {
  let cppNamespace = "::weft::tile";
}

class Tile_Op<string mnemonic, list<Trait> traits = []> : Op<Tile_Dialect, mnemonic, traits # [Tile_SizedTensors]>;

/// An op that says between which bounds the integers lie that it makes.
def Tile_KnowsRange : DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>;

#endif // WEFT_DIALECTS_TILE_IR_TILEOPBASE_TD
