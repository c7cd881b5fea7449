// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Pointers, loads, stores and atomics. Included by TileOps.td.

def Tile_AddPtrOp : Tile_Op<"addptr", [Pure, AllTypesMatch<["ptr", "result"]>]> {
  let summary = "move a pointer by a number of elements";
  let description = [{
    C1: pointer and offset are both scalars or both tensors of one shape. The offset counts pointees and is signed.

    ```mlir
    %q = tile.addptr %p, %offsets : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
    ```
  }];
  let arguments = (ins Tile_PointerLike:$ptr, Tile_IntLike:$offset);
  let results = (outs Tile_PointerLike:$result);
  let assemblyFormat = "$ptr `,` $offset attr-dict `:` type($ptr) `,` type($offset)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Tile_PtrToIntOp : Tile_Op<"ptr_to_int", [Pure]> {
  let summary = "the address as an i64";
  let description = [{
    C1: the result is an i64, or a tensor of it in the pointers' shape.

    ```mlir
    %i = tile.ptr_to_int %p : !tile.ptr<f16> -> i64
    ```
  }];
  let arguments = (ins Tile_PointerLike:$source);
  let results = (outs Tile_IntLike:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_IntToPtrOp : Tile_Op<"int_to_ptr", [Pure]> {
  let summary = "an i64 as an address";
  let description = [{
    C1: the source is an i64, or a tensor of it in the pointers' shape.

    ```mlir
    %p = tile.int_to_ptr %i : i64 -> !tile.ptr<f16>
    ```
  }];
  let arguments = (ins Tile_IntLike:$source);
  let results = (outs Tile_PointerLike:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_PtrCastOp : Tile_Op<"ptr_cast", [Pure]> {
  let summary = "the same address with another pointee type";
  let description = [{
    C1: the result has the source's shape.

    ```mlir
    %q = tile.ptr_cast %p : !tile.ptr<i32> -> !tile.ptr<f32>
    ```
  }];
  let arguments = (ins Tile_PointerLike:$source);
  let results = (outs Tile_PointerLike:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_LoadOp : Tile_Op<"load", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "read from device memory";
  let description = [{
    Reads the pointee of each pointer whose mask is true; elsewhere the result is `other`, or undefined without it, and memory is
    not touched.

    A volatile load is of memory that others change: each element is read once, whatever the layout, and what the program accesses
    after it is ordered after it, at the device's scope.

    C1: the result is the pointee, or a tensor of it in the pointers' shape. C2: a mask has the pointers' shape. C3: `other` needs a
    mask and has the result's type. C4: at most one of a cache operator, an eviction priority and `isVolatile`; the operator is one
    of loads. PTX: `ld.global`, `ld.volatile.global`, vectorised where the layout and alignment allow it.

    ```mlir
    %x = tile.load %p, %m, %zero : tensor<64x!tile.ptr<f16>>
    ```
  }];
  let arguments = (ins Tile_PointerLike:$ptr, Optional<Tile_BoolLike>:$mask, Optional<Tile_Value>:$other,
                       DefaultValuedAttr<Tile_CacheModifierAttr, "::weft::tile::CacheModifier::None">:$cache,
                       DefaultValuedAttr<Tile_EvictionAttr, "::weft::tile::Eviction::Normal">:$eviction,
                       UnitAttr:$isVolatile);
  let results = (outs Tile_Value:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Tile_StoreOp : Tile_Op<"store", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "write to device memory where the mask is true";
  let description = [{
    C1: the value is the pointee, or a tensor of it in the pointers' shape. C2: a mask has the pointers' shape. C3: a cache operator or
    an eviction priority, not both; the operator is one of stores. PTX: `st.global`.

    ```mlir
    tile.store %p, %x, %m : tensor<64x!tile.ptr<f16>>
    ```
  }];
  let arguments = (ins Tile_PointerLike:$ptr, Tile_Value:$value, Optional<Tile_BoolLike>:$mask,
                       DefaultValuedAttr<Tile_CacheModifierAttr, "::weft::tile::CacheModifier::None">:$cache,
                       DefaultValuedAttr<Tile_EvictionAttr, "::weft::tile::Eviction::Normal">:$eviction);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Tile_AtomicRMWOp : Tile_Op<"atomic_rmw", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "read, combine and write back, as one step; gives the old value";
  let description = [{
    A release orders everything that the program did before, an acquire everything that it does after, whichever threads do it.

    C1: value and result are the pointee in the pointers' shape. C2: a mask has the pointers' shape; where it is false nothing
    happens and the result is undefined. C3: `fadd` takes f16, bf16, f32 and f64, `exchange` integers and floats of 32 or 64 bits,
    the others integers of 32 or 64 bits. PTX: `atom` with the
    order and scope, `red` when the result is not used and nothing is acquired.

    ```mlir
    %old = tile.atomic_rmw fadd %p, %x, %m : (tensor<64x!tile.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> tensor<64xf32>
    ```
  }];
  let arguments = (ins Tile_AtomicKindAttr:$kind, Tile_PointerLike:$ptr, Tile_Value:$value, Optional<Tile_BoolLike>:$mask,
                       DefaultValuedAttr<Tile_MemoryOrderAttr, "::weft::tile::MemoryOrder::AcqRel">:$order,
                       DefaultValuedAttr<Tile_MemoryScopeAttr, "::weft::tile::MemoryScope::GPU">:$scope);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$kind $ptr `,` $value (`,` $mask^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Tile_AtomicCASOp : Tile_Op<"atomic_cas", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "write a value where memory holds the expected one, as one step; gives the old value";
  let description = [{
    C1: compare, value and result are the pointee in the pointers' shape. C2: it is an integer or float of 16, 32 or 64 bits. 
    PTX: `atom.cas` with the order and scope, which are as in `tile.atomic_rmw`.

    ```mlir
    %old = tile.atomic_cas %lock, %free, %taken {order = #tile<order acquire>} : (!tile.ptr<i32>, i32, i32) -> i32
    ```
  }];
  let arguments = (ins Tile_PointerLike:$ptr, Tile_Value:$compare, Tile_Value:$value,
                       DefaultValuedAttr<Tile_MemoryOrderAttr, "::weft::tile::MemoryOrder::AcqRel">:$order,
                       DefaultValuedAttr<Tile_MemoryScopeAttr, "::weft::tile::MemoryScope::GPU">:$scope);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$ptr `,` $compare `,` $value attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
