// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What an op of a program implements to be computed on tiles of rows.
#ifndef WEFT_COMPILER_CONVERSION_ATTNTOTILE_ROWS_ROWLOCALOPINTERFACE_TD
#define WEFT_COMPILER_CONVERSION_ATTNTOTILE_ROWS_ROWLOCALOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def RowLocalOpInterface : OpInterface<"RowLocalOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    An op whose result at a tile of rows of [B, H, N, D] or [B, H, N] is computed from tiles of rows of its operands, so
    that a kernel that reads the result need not have it stored. The implementations are external models in
    compiler/Conversion/AttnToTile/Rows/Ops, one op a file. What an op makes of its operands' padding it says in the dialect
    (PaddingOpInterface).
  }];
  let methods = [
    InterfaceMethod<"Whether this op is one: some are for some types only.",
      "bool", "isRowLocal", (ins), "", [{ return true; }]>,
    InterfaceMethod<"Whether operand `operand` is read row by row; others are read as a whole, where they are stored.",
      "bool", "readsByRow", (ins "unsigned":$operand), "", [{ return operand == 0; }]>,
    InterfaceMethod<"Which rows of its operands it takes.",
      "::weft::RowsRead", "rowsRead", (ins), "", [{ return ::weft::RowsRead::Own; }]>,
    InterfaceMethod<[{
        How many tiles of rows of its first operand, at other tokens, it takes for one of its result: what computes that
        operand on the way is computed as often.
      }],
      "int64_t", "tilesRead", (ins), "", [{ return 1; }]>,
    InterfaceMethod<"How it goes about the channels of a row.",
      "::weft::ChannelUse", "channelUse", (ins), "", [{ return ::weft::ChannelUse::Each; }]>,
    InterfaceMethod<[{
        The part of `result` at `rows` and `chunk` (null for results [B, H, N]), in its element type: [count, width], or
        what broadcasts to it. A result of one channel is asked for as one column. What is at rows and channels that do
        not exist is the caller's concern.
      }],
      "::mlir::Value", "pull",
      (ins "::mlir::OpResult":$result, "::weft::Puller &":$puller, "const ::weft::RowTile &":$rows, "const ::weft::Chunk *":$chunk)>
  ];
}

#endif // WEFT_COMPILER_CONVERSION_ATTNTOTILE_ROWS_ROWLOCALOPINTERFACE_TD
