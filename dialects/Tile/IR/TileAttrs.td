// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Attributes of the tile dialect: the schedule, and the enumerations of its ops.
#ifndef WEFT_DIALECTS_TILE_IR_TILEATTRS_TD
#define WEFT_DIALECTS_TILE_IR_TILEATTRS_TD

include "dialects/Tile/IR/TileDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Tile_ScheduleAttr : AttrDef<Tile_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "how a kernel is to be spread over the machine";
  let description = [{
    `#tile.schedule<warps = 4, stages = 3>`: the number of warps a program runs on (a power of two, 1 to 32), and how many
    iterations of a loop's loads are in flight at once (1: no pipelining).

    `#tile.schedule<warps = 8, stages = 3, cluster = 2>`: so many programs that are neighbours along the grid's first axis (1, 2, 4 or 8) may run as a cluster and
    share what their loops copy (`warp-multicast`). The grid's first extent must be a multiple of it.

    `#tile.schedule<warps = 8, stages = 2, persistent = true>`: the kernel may run as one block on each multiprocessor, which goes over the grid's programs, so that it copies for the
    next one while it ends one (`warp-persist`).
  }];
  let parameters = (ins "int32_t":$warps, "int32_t":$stages, DefaultValuedParameter<"int32_t", "1">:$cluster, DefaultValuedParameter<"bool", "false">:$persistent);
  let builders = [AttrBuilder<(ins "int32_t":$warps, "int32_t":$stages, CArg<"int32_t", "1">:$cluster, CArg<"bool", "false">:$persistent), [{
    return $_get($_ctxt, warps, stages, cluster, persistent);
  }]>];
  let skipDefaultBuilders = 1;
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}


def Tile_Axis : I32Enum<"Axis", "grid axis", [I32EnumCase<"X", 0, "x">, I32EnumCase<"Y", 1, "y">, I32EnumCase<"Z", 2, "z">]> {
  let cppNamespace = "::weft::tile";
}
def Tile_AxisAttr : EnumAttr<Tile_Dialect, Tile_Axis, "axis">;

def Tile_Precision : I32Enum<"Precision", "how f32 operands of a product are multiplied", [
    I32EnumCase<"TF32", 0, "tf32">,     // rounded to tf32: one matrix instruction
    I32EnumCase<"TF32x3", 1, "tf32x3">, // split in two tf32 parts: three matrix instructions, f32 accuracy
    I32EnumCase<"IEEE", 2, "ieee">]> {  // f32 fused multiply-adds
  let cppNamespace = "::weft::tile";
}
def Tile_PrecisionAttr : EnumAttr<Tile_Dialect, Tile_Precision, "precision">;

def Tile_CacheModifier : I32Enum<"CacheModifier", "cache operator of a load or store (PTX ISA 9.7.9.1)", [
    I32EnumCase<"None", 0, "none">, I32EnumCase<"CA", 1, "ca">, I32EnumCase<"CG", 2, "cg">, I32EnumCase<"CS", 3, "cs">,
    I32EnumCase<"CV", 4, "cv">, I32EnumCase<"WB", 5, "wb">, I32EnumCase<"WT", 6, "wt">]> {
  let cppNamespace = "::weft::tile";
}
def Tile_CacheModifierAttr : EnumAttr<Tile_Dialect, Tile_CacheModifier, "cache">;

def Tile_Eviction : I32Enum<"Eviction", "L2 eviction priority", [
    I32EnumCase<"Normal", 0, "normal">, I32EnumCase<"First", 1, "evict_first">, I32EnumCase<"Last", 2, "evict_last">]> {
  let cppNamespace = "::weft::tile";
}
def Tile_EvictionAttr : EnumAttr<Tile_Dialect, Tile_Eviction, "eviction">;

def Tile_AtomicKind : I32Enum<"AtomicKind", "what an atomic does with the old and the new value", [
    I32EnumCase<"Add", 0, "add">, I32EnumCase<"FAdd", 1, "fadd">, I32EnumCase<"Max", 2, "max">, I32EnumCase<"Min", 3, "min">,
    I32EnumCase<"UMax", 4, "umax">, I32EnumCase<"UMin", 5, "umin">, I32EnumCase<"And", 6, "and">, I32EnumCase<"Or", 7, "or">,
    I32EnumCase<"Xor", 8, "xor">, I32EnumCase<"Exchange", 9, "exchange">]> {
  let cppNamespace = "::weft::tile";
}
def Tile_AtomicKindAttr : EnumAttr<Tile_Dialect, Tile_AtomicKind, "atomic">;

def Tile_MemoryOrder : I32Enum<"MemoryOrder", "memory order of an atomic", [
    I32EnumCase<"Relaxed", 0, "relaxed">, I32EnumCase<"Acquire", 1, "acquire">, I32EnumCase<"Release", 2, "release">,
    I32EnumCase<"AcqRel", 3, "acq_rel">]> {
  let cppNamespace = "::weft::tile";
}
def Tile_MemoryOrderAttr : EnumAttr<Tile_Dialect, Tile_MemoryOrder, "order">;

def Tile_MemoryScope : I32Enum<"MemoryScope", "the threads that an atomic's order holds for (PTX ISA 8.5)", [
    I32EnumCase<"CTA", 0, "cta">,   // the program's own
    I32EnumCase<"GPU", 1, "gpu">,   // every program of the device
    I32EnumCase<"Sys", 2, "sys">]> { // other devices and the host too
  let cppNamespace = "::weft::tile";
}
def Tile_MemoryScopeAttr : EnumAttr<Tile_Dialect, Tile_MemoryScope, "scope">;

#endif // WEFT_DIALECTS_TILE_IR_TILEATTRS_TD
