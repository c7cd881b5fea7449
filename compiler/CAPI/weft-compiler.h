/* Part of Weft. SPDX-License-Identifier: Apache-2.0
 *
 * The compiler behind one C interface: build or parse a module of tile IR, check it, compile it to PTX.
 *
 * Ownership: what a function named `_create` or `_parse` gives belongs to the caller and goes to the matching
 * `_destroy`; texts given through `char **` go to `weftc_string_free`. Types, attributes and locations belong to their
 * context, values and operations to their module. Strings taken are UTF-8, read during the call only. Errors: nothing
 * aborts, exits or prints. What MLIR reports is kept in the context's list of diagnostics. Threads: a context and
 * everything made from it is used by one thread at a time; different contexts are independent.
 */
#ifndef WEFT_COMPILER_CAPI_WEFT_COMPILER_H
#define WEFT_COMPILER_CAPI_WEFT_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFTC_API __attribute__((visibility("default")))

/** Holds the dialects, the uniqued types, attributes and locations, and the diagnostics. */
typedef struct weftc_context weftc_context;
/** A module under construction, or parsed: its IR, an insertion point and the regions not yet attached to an operation.
 */
typedef struct weftc_module weftc_module;
/** A region that belongs to no operation yet. It holds one block. */
typedef struct weftc_region weftc_region;

/** Uniqued in their context: equal means identical. NULL stands for none. */
typedef const struct weftc_type_storage *weftc_type;
typedef const struct weftc_attribute_storage *weftc_attribute;
typedef const struct weftc_location_storage *weftc_location;
/** A result of an operation or an argument of a block. */
typedef struct weftc_value_storage *weftc_value;
typedef struct weftc_operation_storage *weftc_operation;
typedef struct weftc_block_storage *weftc_block;

/** The numbers are those of `weft_status` (runtime/Support/Status.h). */
typedef enum weftc_status {
  WEFTC_OK = 0,
  WEFTC_INVALID_ARGUMENT = 1, /**< options that cannot be right */
  WEFTC_UNSUPPORTED = 5,      /**< IR that is well formed but cannot be lowered; the diagnostics say what and where */
  WEFTC_INTERNAL = 9          /**< a defect in the compiler */
} weftc_status;

/** The compiler's version, for cache keys. Static storage. */
WEFTC_API const char *weftc_version(void);
/** The number of this interface, which rises where something that was here changes or goes, and stays where something
 * joins. compiler/CAPI/weft-compiler.symbols lists the functions. */
#define WEFTC_ABI_VERSION 1
/** The WEFTC_ABI_VERSION that the library was built with. */
WEFTC_API int weftc_abi_version(void);

/** The targets and what bounds a kernel on each, as a JSON array of objects: "name", "warp_size", "max_warps",
 * "registers_per_thread" and the other fields of targets/Target.h, "mma", an array of {"element", "accumulator",
 * "shape": [m, n, k]}, and "gpus", an array of the GPUs' rates. The first is the default. Goes to `weftc_string_free`.
 */
WEFTC_API char *weftc_targets(void);

/** Frees a text given by this interface. NULL is allowed. */
WEFTC_API void weftc_string_free(char *text);

/* ---- Contexts and diagnostics
 * ------------------------------------------------------------------------------------------ */

/** A context with every dialect of the compiler loaded. NULL when out of memory. */
WEFTC_API weftc_context *weftc_context_create(void);
/** Destroys a context. Its modules must be destroyed before. */
WEFTC_API void weftc_context_destroy(weftc_context *context);

typedef enum weftc_severity { WEFTC_ERROR = 0, WEFTC_WARNING = 1, WEFTC_REMARK = 2, WEFTC_NOTE = 3 } weftc_severity;

/** One thing that was reported. The strings live until the list is cleared. */
typedef struct weftc_diagnostic {
  weftc_severity severity; /**< a NOTE belongs to the nearest diagnostic before it that is none */
  const char *message;
  const char *file; /**< empty when the location is not known */
  unsigned line;    /**< from 1 */
  unsigned column;  /**< from 1 */
} weftc_diagnostic;

/** How many diagnostics, notes counted, have been reported since the list was last cleared. */
WEFTC_API size_t weftc_context_diagnostic_count(const weftc_context *context);
/** Diagnostic `index`, in order of reporting. `index` must be less than the count. */
WEFTC_API weftc_diagnostic weftc_context_diagnostic(const weftc_context *context, size_t index);
WEFTC_API void weftc_context_clear_diagnostics(weftc_context *context);

/* ---- Types, attributes, locations
 * -------------------------------------------------------------------------------------- */

/** The type that `text` spells, for example "tensor<64x!tile.ptr<f16>>"; NULL with a diagnostic when it spells none. */
WEFTC_API weftc_type weftc_type_parse(weftc_context *context, const char *text);
/** A type's spelling. */
WEFTC_API char *weftc_type_print(weftc_type type);

/** The attribute that `text` spells, for example "#tile<axis x>"; NULL with a diagnostic when it spells none. */
WEFTC_API weftc_attribute weftc_attribute_parse(weftc_context *context, const char *text);
/** An integer of an integer type; for a tensor type, a tensor of which every element is that integer. NULL for other
 * types. */
WEFTC_API weftc_attribute weftc_attribute_integer(weftc_type type, int64_t value);
/** As `weftc_attribute_integer`, for float types. The value is rounded to the type, to nearest even. */
WEFTC_API weftc_attribute weftc_attribute_float(weftc_type type, double value);
WEFTC_API weftc_attribute weftc_attribute_string(weftc_context *context, const char *text);
WEFTC_API weftc_attribute weftc_attribute_unit(weftc_context *context);
WEFTC_API weftc_attribute weftc_attribute_i32_array(weftc_context *context, const int32_t *values, size_t count);

/** A position in a source file, line and column from 1. */
WEFTC_API weftc_location weftc_location_file(weftc_context *context, const char *file, unsigned line, unsigned column);
/** A position in a function that was inlined at `caller`. */
WEFTC_API weftc_location weftc_location_inlined(weftc_location callee, weftc_location caller);

/* ---- Modules and building
 * ---------------------------------------------------------------------------------------------- */

/** An empty module; operations are inserted at the end of its body. */
WEFTC_API weftc_module *weftc_module_create(weftc_context *context, weftc_location location);
/** The module that MLIR text spells, verified; NULL with diagnostics when it spells none. `name` stands for the file in
 * them. */
WEFTC_API weftc_module *weftc_module_parse(weftc_context *context, const char *text, const char *name);
/** Destroys a module and the regions that were never attached. */
WEFTC_API void weftc_module_destroy(weftc_module *module);
/** The module as MLIR text, with locations when asked for. */
WEFTC_API char *weftc_module_print(const weftc_module *module, bool locations);
/** Whether the module keeps every constraint of its dialects; the diagnostics say which it does not. */
WEFTC_API bool weftc_module_verify(weftc_module *module);
/** Sets an attribute of the module operation itself, for example "warp.target". */
WEFTC_API void weftc_module_set_attribute(weftc_module *module, const char *name, weftc_attribute value);

/** The block at whose end operations are inserted now. */
WEFTC_API weftc_block weftc_module_insertion_block(const weftc_module *module);
/** Inserts what follows at the end of `block`. */
WEFTC_API void weftc_module_set_insertion_block(weftc_module *module, weftc_block block);

/** A region of one block with arguments of these types. It belongs to the module until an operation takes it. */
WEFTC_API weftc_region *weftc_region_create(weftc_module *module, const weftc_type *arguments, size_t count,
                                            weftc_location location);
WEFTC_API weftc_block weftc_region_block(const weftc_region *region);
/** Argument `index` of the region's block, in range. */
WEFTC_API weftc_value weftc_region_argument(const weftc_region *region, size_t index);
/** Gives a region that no operation has taken another argument, after those it has. */
WEFTC_API weftc_value weftc_region_add_argument(weftc_region *region, weftc_type type, weftc_location location);

typedef struct weftc_named_attribute {
  const char *name;
  weftc_attribute value;
} weftc_named_attribute;

/** What makes an operation. The regions are taken and must not be used afterwards; one with neither arguments nor
 * operations becomes a region without a block. */
typedef struct weftc_operation_spec {
  const char *name; /**< "arith.addi" */
  weftc_location location;
  const weftc_value *operands;
  size_t operand_count;
  const weftc_type *results;
  size_t result_count;
  const weftc_named_attribute *attributes;
  size_t attribute_count;
  weftc_region *const *regions;
  size_t region_count;
} weftc_operation_spec;

/** Creates an operation at the insertion point. It is checked by `weftc_module_verify`, not here. NULL with a
 * diagnostic when no loaded dialect has an operation of that name, or an attribute does not fit it. */
WEFTC_API weftc_operation weftc_operation_create(weftc_module *module, const weftc_operation_spec *spec);
/** Result `index`, in range. */
WEFTC_API weftc_value weftc_operation_result(weftc_operation operation, size_t index);
/** Sets a discardable attribute, for example "tile.divisibility". */
WEFTC_API void weftc_operation_set_attribute(weftc_operation operation, const char *name, weftc_attribute value);
/** Sets a discardable attribute on the operation that defines `value`; false for an argument of a block. */
WEFTC_API bool weftc_value_set_attribute(weftc_value value, const char *name, weftc_attribute attribute);

/* ---- Patterns
 * ---------------------------------------------------------------------------------------------------------- */

/** A tensor that a pattern names by its number, row by row; booleans as 0 and 1. */
typedef struct weftc_pattern_operand {
  const int32_t *values;
  const int64_t *shape;
  size_t rank;
} weftc_pattern_operand;

/** A pattern with all that it names, and sizes of at least 0 (batches and heads 1). */
typedef struct weftc_pattern_instance {
  const char *pattern; /**< "#attn.causal" */
  int64_t batches, heads, queries, keys;
  const weftc_pattern_operand *operands;
  size_t operand_count;
  /** What each mask region says of every pair of the matrix, [batches, heads, queries, keys]; shifts and transposes
   * around the mask are taken into account in it. */
  const uint8_t *const *masks;
  size_t mask_count;
} weftc_pattern_instance;

/** Which pairs belong: 0 or 1 in `matrix`, [batches, heads, queries, keys]. WEFTC_INVALID_ARGUMENT, with a text in
 * `*error`, for a text that is no pattern, or operands and masks that do not fit it. */
WEFTC_API weftc_status weftc_pattern_matrix(weftc_context *context, const weftc_pattern_instance *instance,
                                            uint8_t *matrix, char **error);
/** The classes of blocks (0 no pair belongs, 1 some do, 2 all that there are do) in `summary`, [batches, heads,
 * cdiv(queries, block_rows), cdiv(keys, block_columns)]; blocks of at least 1. Errors as those of weftc_pattern_matrix.
 */
WEFTC_API weftc_status weftc_pattern_summary(weftc_context *context, const weftc_pattern_instance *instance,
                                             int64_t block_rows, int64_t block_columns, uint8_t *summary, char **error);

/* ---- Compiling
 * --------------------------------------------------------------------------------------------------------- */

/** Lowers a module of tile kernels, and of attn programs that launch them, to PTX; the module holds lowered IR
 * afterwards and is of use only for destruction.
 *
 *  `options_json`: {"target": "sm_80", "dump": ["tile", "warp", "llvm"], "differentiate": false, "line_info": true,
 * "remarks": false, "decisions": false, "locations": false};
 * "dump" names the stages whose IR is wanted ("all" stands for every stage), with every op's location where
 * "locations" says so; with "boxes": false no bulk copies fill the rings of loops or store results, with "roles": false no warp of its
 * own makes them; "remarks" asks which fast paths were not taken, and why, "decisions" what was chosen: layouts,
 * widths of accesses, places in shared memory; with "differentiate" each program @f also
 * gives @f.forward and @f.backward; with "linearise": {"function": "f.forward", "arguments": [0, 2]} the module gives
 * @f.forward.tangent alone, for tangents of these arguments, all of floats if none is named. On success `*ptx` is the
 * PTX text and `*info_json` an object: "target",
 * "ptx_version", "kernels": [{"entry", "num_warps", "num_stages", "shared_bytes", "cluster" where there is one, "arguments": [{"type",
 * "divisibility"}]}], "programs": plans as a library has them (docs/LibraryFormat.md), "times_ms": {stage: processor
 * time}, "remarks": [{"name", "category", "function", "message", "file", "line", "column"}], "decisions": as these, "ir": {stage: text} for the stages asked for. On failure both are NULL, `*error` says what failed in one
 * line, and the context's diagnostics say where. */
WEFTC_API weftc_status weftc_compile(weftc_module *module, const char *options_json, char **ptx, char **info_json,
                                     char **error);

/* ---- Tools
 * --------------------------------------------------------------------------------------------------------- */

/** Runs a tool on MLIR text as a process's `main` does: "weft-opt" (passes), "weft-lsp-server" (what an editor asks, on
 * the standard streams) or "weft-reduce" (a module made smaller). `argv[0]` is the tool's name in what it prints.
 * Unlike the functions above it prints, and may end the process: it is meant for a process of its own, once. Gives the
 * exit code, 2 for a name that is no tool's. */
WEFTC_API int weftc_tool_main(const char *name, int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_COMPILER_CAPI_WEFT_COMPILER_H */
