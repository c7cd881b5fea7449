// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Ops that say which program runs, and ops that only move elements. Included by TileOps.td.

def Tile_ProgramIdOp : Tile_Op<"program_id", [Pure, Tile_KnowsRange]> {
  let summary = "index of this program along one axis of the grid";
  let description = [{
    From 0 to `tile.num_programs` of the axis - 1. PTX: `%ctaid`.

    ```mlir
    %i = tile.program_id x : i32
    ```
  }];
  let arguments = (ins Tile_AxisAttr:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict `:` type($result)";
}

def Tile_NumProgramsOp : Tile_Op<"num_programs", [Pure, Tile_KnowsRange]> {
  let summary = "number of programs along one axis of the grid";
  let description = [{
    At least 1. PTX: `%nctaid`.

    ```mlir
    %n = tile.num_programs z : i32
    ```
  }];
  let arguments = (ins Tile_AxisAttr:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict `:` type($result)";
}

def Tile_MakeRangeOp : Tile_Op<"make_range", [Pure, Tile_KnowsRange]> {
  let summary = "the integers start, start+1, ..., end-1";
  let description = [{
    C1: end > start. C2: the result is `tensor<Nxi32>` with N = end - start.

    ```mlir
    %r = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    ```
  }];
  let arguments = (ins I32Attr:$start, I32Attr:$end);
  let results = (outs Tile_IntTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_SplatOp : Tile_Op<"splat", [Pure, Tile_KnowsRange]> {
  let summary = "a tensor whose every element is one scalar";
  let description = [{
    C1: the scalar has the tensor's element type.

    ```mlir
    %t = tile.splat %s : f32 -> tensor<64x32xf32>
    ```
  }];
  let arguments = (ins Tile_Element:$source);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_ExpandDimsOp : Tile_Op<"expand_dims", [Pure, Tile_KnowsRange]> {
  let summary = "insert an axis of size 1";
  let description = [{
    C1: 0 <= axis <= rank. C2: the result's shape is the source's with a 1 inserted at `axis`, the element type the same.
    With layouts, dropping the axis from the result's layout gives the source's.

    ```mlir
    %column = tile.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    ```
  }];
  let arguments = (ins Tile_Tensor:$source, I32Attr:$axis);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Tile_BroadcastOp : Tile_Op<"broadcast", [Pure, Tile_KnowsRange]> {
  let summary = "repeat axes of size 1";
  let description = [{
    C1: equal rank and element type. C2: each axis of the source is 1 or equal to the result's.

    ```mlir
    %plane = tile.broadcast %column : tensor<64x1xi32> -> tensor<64x32xi32>
    ```
  }];
  let arguments = (ins Tile_Tensor:$source);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Tile_ReshapeOp : Tile_Op<"reshape", [Pure, Tile_KnowsRange]> {
  let summary = "the same elements, in row-major order, under another shape";
  let description = [{
    C1: equal element count and element type.

    ```mlir
    %flat = tile.reshape %plane : tensor<64x32xi32> -> tensor<2048xi32>
    ```
  }];
  let arguments = (ins Tile_Tensor:$source);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Tile_PermuteOp : Tile_Op<"permute", [Pure, Tile_KnowsRange]> {
  let summary = "reorder the axes: result axis i is source axis order[i]";
  let description = [{
    C1: order is a permutation of the axes. C2: result shape[i] = source shape[order[i]], the element type the same.

    ```mlir
    %t = tile.permute %x {order = array<i32: 1, 0>} : tensor<64x32xf16> -> tensor<32x64xf16>
    ```
  }];
  let arguments = (ins Tile_Tensor:$source, DenseI32ArrayAttr:$order);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Tile_JoinOp : Tile_Op<"join", [Pure, SameTypeOperands, Tile_KnowsRange]> {
  let summary = "two tensors along a new last axis of size 2";
  let description = [{
    C1: the result's shape is the operands' with a 2 appended, the element type the same.

    ```mlir
    %pair = tile.join %re, %im : tensor<64xf32> -> tensor<64x2xf32>
    ```
  }];
  let arguments = (ins Tile_Tensor:$lhs, Tile_Tensor:$rhs);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_GatherOp : Tile_Op<"gather", [Pure, Tile_KnowsRange]> {
  let summary = "elements picked along an axis: result[.., i, ..] = source[.., indices[.., i, ..], ..]";
  let description = [{
    Each element of the result is the one that its index names along `axis`, at the same place along the other axes. An index below 0 or past the axis' end gives any value.

    C1: 0 <= axis < rank. C2: `indices` has the source's shape but for the size along `axis`; elements are i32. C3: the result has the shape of `indices` and the source's
    element type.

    ```mlir
    %shifted = tile.gather %x[%rows] {axis = 0 : i32} : tensor<64x32xf16>[tensor<16x32xi32>] -> tensor<16x32xf16>
    ```
  }];
  let arguments = (ins Tile_Tensor:$source, Tile_IntTensor:$indices, I32Attr:$axis);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source `[` $indices `]` attr-dict `:` type($source) `[` type($indices) `]` `->` type($result)";
  let hasVerifier = 1;
}

def Tile_HistogramOp : Tile_Op<"histogram", [Pure, Tile_KnowsRange]> {
  let summary = "how many elements have each of the values 0 to the result's size - 1";
  let description = [{
    An element that is below 0 or past the last value, or where `mask` is false, is not counted. The counts are made in shared memory, by one `red.shared.add` for each element.

    C1: elements of `values` are i32. C2: `mask` has their shape. C3: the result is of rank 1 and of i32.

    ```mlir
    %counts = tile.histogram %values, %mask : tensor<1024xi32>, tensor<1024xi1> -> tensor<128xi32>
    ```
  }];
  let arguments = (ins Tile_IntTensor:$values, Optional<Tile_BoolTensor>:$mask);
  let results = (outs Tile_IntTensor:$result);
  let assemblyFormat = "$values (`,` $mask^)? attr-dict `:` type($values) (`,` type($mask)^)? `->` type($result)";
  let hasVerifier = 1;
}

def Tile_ShiftOp : Tile_Op<"shift", [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "elements moved along an axis, zeros where none come from: result[.., i, ..] = source[.., i - offset, ..]";
  let description = [{
    An element whose place along `axis` would be outside of the source is 0. What a convolution's taps read of its signal are shifts of it, one for each tap.

    C1: 0 <= axis < rank. C2: the magnitude of `offset` is less than the size along `axis`. C3: elements are integers or floats.

    ```mlir
    %left = tile.shift %x {axis = 1 : i32, offset = -1 : i32} : tensor<4x64x16xf16>
    ```
  }];
  let arguments = (ins Tile_Tensor:$source, I32Attr:$axis, I32Attr:$offset);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def Tile_SplitOp : Tile_Op<"split", [Pure, Tile_KnowsRange]> {
  let summary = "the two halves of a tensor whose last axis has size 2";
  let description = [{
    C1: the source's last axis is 2. C2: each result's shape is the source's without it, the element type the same.

    ```mlir
    %re, %im = tile.split %pair : tensor<64x2xf32> -> tensor<64xf32>, tensor<64xf32>
    ```
  }];
  let arguments = (ins Tile_Tensor:$source);
  let results = (outs Tile_Tensor:$lhs, Tile_Tensor:$rhs);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($lhs) `,` type($rhs)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
