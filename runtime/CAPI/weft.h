/* Part of Weft. SPDX-License-Identifier: Apache-2.0 */
/*
 * Weft's runtime in C: opens PTX libraries and runs their kernels on a CUDA device or on the simulator. Needs neither
 * Python nor a compiler, and links no CUDA: the driver is loaded when a CUDA device is first asked for.
 *
 * Errors. A function that can fail returns a weft_status and takes `weft_error **error` last. On failure, where `error`
 * is not NULL, *error receives a text that the caller frees with weft_error_free; on success *error is set to NULL.
 * Results (`weft_thing **thing`) are written on success only and set to NULL on failure. No function exits, aborts or
 * prints. A NULL handle where one is needed is WEFT_INVALID_ARGUMENT.
 *
 * Ownership. What an ..._open, ..._load, ..._create or ..._kernel function gives is the caller's to close. Close
 * functions accept NULL. Handles keep alive what they need: a kernel its module, a module its device. Strings returned
 * as `const char *` belong to the handle and live as long as it does.
 *
 * Threads. Every handle may be used from several threads at once; closing one while another thread uses it is the
 * caller's error. There is no per-thread state: the calling thread's current CUDA context is left as it was.
 */
#ifndef WEFT_H
#define WEFT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ---------------------------------------------------------------------------------------------------- */

/** What kind of failure it was. The numbers never change. */
typedef enum weft_status {
  WEFT_OK = 0,
  WEFT_INVALID_ARGUMENT = 1, /**< the caller passed something that cannot be right */
  WEFT_NOT_FOUND = 2,        /**< no such file, entry, kernel or device */
  WEFT_CORRUPT = 3,          /**< a library, manifest or PTX that is torn, altered or does not parse */
  WEFT_WRONG_TARGET = 4,     /**< made for a device this is not */
  WEFT_UNSUPPORTED = 5,      /**< well formed, but not implemented here */
  WEFT_OUT_OF_MEMORY = 6,
  WEFT_DRIVER_ERROR = 7, /**< the CUDA driver refused; the text holds its own words */
  WEFT_FINDING = 8,      /**< the simulator found the program at fault */
  WEFT_INTERNAL = 9      /**< a defect in Weft itself */
} weft_status;

/** The text of one failure. */
typedef struct weft_error weft_error;

/** The text: what was expected, what came, what to do. Never NULL; "" for a NULL error. */
WEFT_API const char *weft_error_message(const weft_error *error);
/** Frees an error. */
WEFT_API void weft_error_free(weft_error *error);
/** "corrupt" and the like; "unknown" for a number that is no status. */
WEFT_API const char *weft_status_name(int status);
/** Weft's version, "0.1.0". */
WEFT_API const char *weft_version(void);
/** The number of this interface, the N of libweft.so.N. It rises where something that was here changes or goes, and
 * stays where something joins: a program compiled with one number runs with every library of that number that is not
 * older. runtime/CAPI/weft.symbols lists the functions. */
#define WEFT_ABI_VERSION 1
/** The WEFT_ABI_VERSION that the library was built with. */
WEFT_API int weft_abi_version(void);

/* ---- devices --------------------------------------------------------------------------------------------------- */

/** A CUDA device, its primary context retained, or a simulator. */
typedef struct weft_device weft_device;
/** An address in a device's memory. 0 is never valid. */
typedef uint64_t weft_address;
/** On CUDA a CUstream (cudaStream_t): the caller's own, or one made here. NULL is the default stream. */
typedef void *weft_stream;
/** On CUDA a CUevent (cudaEvent_t). */
typedef void *weft_event;

/** Facts about a device. */
typedef struct weft_device_properties {
  int major, minor;               /**< compute capability */
  int simulated;                  /**< 1 where results come from the simulator: times mean nothing */
  uint32_t multiprocessors;       /**< on the simulator: worker threads */
  uint32_t max_threads_per_block; /**< threads in a block */
  uint32_t max_shared_bytes;      /**< dynamic shared memory that one block may ask for */
  uint64_t memory_bytes;          /**< global memory */
} weft_device_properties;

/**
 * Writes the name of the default device to `buffer` as snprintf does, and returns its full length: the environment
 * variable WEFT_DEVICE where it is set; else "cuda:0" where a CUDA driver with a device answers; else "simulator".
 */
WEFT_API size_t weft_default_device(char *buffer, size_t capacity);

/** Number of CUDA devices, 0 where there is no driver. Where that is so, `error` says why with WEFT_NOT_FOUND. */
WEFT_API weft_status weft_cuda_device_count(int *count, weft_error **error);

/**
 * Opens a device: "cuda:N"; "simulator"; "simulator:sm_80" to have it answer as that target; NULL or "" for the
 * default. WEFT_NOT_FOUND where there is no such device or no driver, WEFT_INVALID_ARGUMENT for a name of another form.
 */
WEFT_API weft_status weft_device_open(const char *name, weft_device **device, weft_error **error);
/** Lets go of a device; it stays open while something made from it is. */
WEFT_API void weft_device_close(weft_device *device);
/** The name that opens the device: "cuda:0", "simulator". NULL for NULL. */
WEFT_API const char *weft_device_name(const weft_device *device);
/** What the device calls itself: "NVIDIA H200". NULL for NULL. */
WEFT_API const char *weft_device_model(const weft_device *device);
/** Fills in the device's facts. */
WEFT_API weft_status weft_device_get_properties(const weft_device *device, weft_device_properties *properties,
                                                weft_error **error);

/** Allocates device memory, aligned to 256 bytes at least. WEFT_OUT_OF_MEMORY. */
WEFT_API weft_status weft_buffer_alloc(weft_device *device, size_t bytes, weft_address *address, weft_error **error);
/** Frees what weft_buffer_alloc gave. */
WEFT_API weft_status weft_buffer_free(weft_device *device, weft_address address, weft_error **error);
/** Copies host memory to the device in the order of `stream`. `source` may be re-used on return. */
WEFT_API weft_status weft_buffer_write(weft_device *device, weft_address destination, const void *source, size_t bytes,
                                       weft_stream stream, weft_error **error);
/** Copies device memory to the host after what `stream` holds; the data is there on return. */
WEFT_API weft_status weft_buffer_read(weft_device *device, void *destination, weft_address source, size_t bytes,
                                      weft_stream stream, weft_error **error);
/** Copies within the device in the order of `stream`. */
WEFT_API weft_status weft_buffer_copy(weft_device *device, weft_address destination, weft_address source, size_t bytes,
                                      weft_stream stream, weft_error **error);
/** Sets bytes to `value` in the order of `stream`. */
WEFT_API weft_status weft_buffer_fill(weft_device *device, weft_address destination, uint8_t value, size_t bytes,
                                      weft_stream stream, weft_error **error);
/**
 * Makes host memory addressable by kernels in place until weft_buffer_unmap: on the simulator only, WEFT_UNSUPPORTED on
 * CUDA. Ranges that overlap must be mapped as one.
 */
WEFT_API weft_status weft_buffer_map(weft_device *device, void *data, size_t bytes, weft_address *address,
                                     weft_error **error);
/** Ends weft_buffer_map. */
WEFT_API weft_status weft_buffer_unmap(weft_device *device, weft_address address, weft_error **error);

/** Makes a stream that does not wait for the default stream. */
WEFT_API weft_status weft_stream_create(weft_device *device, weft_stream *stream, weft_error **error);
/** Destroys a stream made by weft_stream_create. */
WEFT_API weft_status weft_stream_destroy(weft_device *device, weft_stream stream, weft_error **error);
/** Waits until the stream is empty. On CUDA the faults of kernels launched before are reported here. */
WEFT_API weft_status weft_stream_synchronize(weft_device *device, weft_stream stream, weft_error **error);

/** Makes an event. */
WEFT_API weft_status weft_event_create(weft_device *device, weft_event *event, weft_error **error);
/** Destroys an event made by weft_event_create. */
WEFT_API weft_status weft_event_destroy(weft_device *device, weft_event event, weft_error **error);
/** Marks this point of `stream`. */
WEFT_API weft_status weft_event_record(weft_device *device, weft_event event, weft_stream stream, weft_error **error);
/** Waits for `end`; gives the time between two recorded events in milliseconds. */
WEFT_API weft_status weft_event_elapsed(weft_device *device, weft_event begin, weft_event end, float *milliseconds,
                                        weft_error **error);

/* ---- values and shapes ----------------------------------------------------------------------------------------- */

/** What a weft_value holds. */
typedef enum weft_value_kind { WEFT_ADDRESS = 0, WEFT_INTEGER = 1, WEFT_REAL = 2, WEFT_UNSIGNED = 3 } weft_value_kind;

/**
 * One argument of a launch. The kernel's signature says what it becomes: an address for a pointer; an integer, in the
 * range of the type, for i1 to u64 or for a floating-point type; a real for a floating-point type, rounded to nearest
 * even. WEFT_UNSIGNED says integers that WEFT_INTEGER cannot; of the latter u64 takes the bits, -1 for the largest.
 */
typedef struct weft_value {
  int32_t kind; /**< a weft_value_kind */
  union {
    weft_address address;
    int64_t integer;
    double real;
    uint64_t unsigned_integer;
  } as;
} weft_value;

/** Three counts, of blocks or of threads. */
typedef struct weft_extent {
  uint32_t x, y, z;
} weft_extent;

static inline weft_value weft_value_address(weft_address address) {
  weft_value value;
  value.kind = WEFT_ADDRESS;
  value.as.address = address;
  return value;
}
static inline weft_value weft_value_integer(int64_t integer) {
  weft_value value;
  value.kind = WEFT_INTEGER;
  value.as.integer = integer;
  return value;
}
static inline weft_value weft_value_unsigned(uint64_t integer) {
  weft_value value;
  value.kind = WEFT_UNSIGNED;
  value.as.unsigned_integer = integer;
  return value;
}
static inline weft_value weft_value_real(double real) {
  weft_value value;
  value.kind = WEFT_REAL;
  value.as.real = real;
  return value;
}

/* ---- libraries ------------------------------------------------------------------------------------------------- */

/** An opened PTX library: whole and checked, all in memory. */
typedef struct weft_library weft_library;

/** One compiled form of a kernel. Strings live as long as the library. */
typedef struct weft_variant_info {
  const char *target;    /**< "sm_90a" */
  const char *file;      /**< name of the PTX file */
  const char *ptx;       /**< the PTX text */
  const char *entry;     /**< the entry's name in it */
  uint32_t num_warps;    /**< a block has 32 times as many threads */
  uint32_t num_stages;   /**< depth of the software pipeline */
  uint32_t shared_bytes; /**< dynamic shared memory */
  int32_t registers;     /**< per thread as ptxas reported, -1 where it was not asked */
  int32_t spill_bytes;   /**< spill stores and loads per thread, -1 likewise */
} weft_variant_info;

/**
 * Opens the library in directory `path`. WEFT_NOT_FOUND where there is none; WEFT_CORRUPT, saying which file and why,
 * for one that is torn, altered, foreign or of another schema.
 */
WEFT_API weft_status weft_library_open(const char *path, weft_library **library, weft_error **error);
/** Closes a library, and lets go of the devices that it was launched on. */
WEFT_API void weft_library_close(weft_library *library);
/** The text of manifest.json (docs/LibraryFormat.md). NULL for NULL. */
WEFT_API const char *weft_library_manifest(const weft_library *library);

/** Number of kernels, 0 for NULL. */
WEFT_API size_t weft_library_kernel_count(const weft_library *library);
/** Name of a kernel; NULL for an index out of range. */
WEFT_API const char *weft_library_kernel_name(const weft_library *library, size_t kernel);
/** Index of a kernel by name. WEFT_NOT_FOUND names those that there are. */
WEFT_API weft_status weft_library_find_kernel(const weft_library *library, const char *name, size_t *kernel,
                                              weft_error **error);
/** Number of arguments a kernel takes, 0 for an index out of range. */
WEFT_API size_t weft_library_argument_count(const weft_library *library, size_t kernel);
/** Name of an argument; NULL for an index out of range. */
WEFT_API const char *weft_library_argument_name(const weft_library *library, size_t kernel, size_t argument);
/** Type of an argument as signatures spell it, "*fp16"; NULL for an index out of range. */
WEFT_API const char *weft_library_argument_type(const weft_library *library, size_t kernel, size_t argument);
/** Number of variants, 0 for an index out of range. */
WEFT_API size_t weft_library_variant_count(const weft_library *library, size_t kernel);
/** Fills in a variant's facts. */
WEFT_API weft_status weft_library_get_variant(const weft_library *library, size_t kernel, size_t variant,
                                              weft_variant_info *info, weft_error **error);

/**
 * Launches a kernel on `stream` of `device`: the first variant whose target runs there and whose guards hold. With a
 * NULL `grid` the library's own grid expression gives it. What was loaded stays loaded while the library is open.
 * WEFT_NOT_FOUND: no such kernel. WEFT_INVALID_ARGUMENT: values that do not fit the signature, or no variant takes.
 * WEFT_WRONG_TARGET: no variant runs on the device. WEFT_FINDING: the simulator found the kernel at fault; the text
 * lists the findings. Faults on CUDA come with a later synchronisation.
 */
WEFT_API weft_status weft_library_launch(weft_library *library, weft_device *device, const char *kernel,
                                         const weft_extent *grid, const weft_value *values, size_t count,
                                         weft_stream stream, weft_error **error);

/** A file to be put into a library. */
typedef struct weft_file {
  const char *name; /**< letters, digits, '_', '-' and '.', not starting with '.' or a digit */
  const char *data; /**< may be NULL where `bytes` is 0 */
  size_t bytes;
} weft_file;

/**
 * Writes a library: `kernels_json` is the manifest (kernels and programs) without schema, versions, parts and digest.
 * `path` is at every moment what it was or whole; an older library or an empty directory there is replaced, anything
 * else, a library with other files in it too, left alone with WEFT_INVALID_ARGUMENT.
 */
WEFT_API weft_status weft_library_write(const char *path, const char *kernels_json, const weft_file *files,
                                        size_t count, weft_error **error);

/**
 * A library that was never on disk: `kernels_json` and the files as weft_library_write takes them, checked as strictly.
 * `name` stands for its path in messages. WEFT_INVALID_ARGUMENT where they make no library.
 */
WEFT_API weft_status weft_library_make(const char *name, const char *kernels_json, const weft_file *files, size_t count,
                                       weft_library **library, weft_error **error);

/* ---- programs -------------------------------------------------------------------------------------------------- */

/** What the elements of a tensor are. The numbers never change. */
typedef enum weft_element {
  WEFT_I1 = 0, /**< a byte, 0 or 1 */
  WEFT_I8 = 1,
  WEFT_I32 = 2,
  WEFT_I64 = 3,
  WEFT_FP16 = 4,
  WEFT_BF16 = 5,
  WEFT_FP32 = 6,
  WEFT_FP8E4NV = 7, /**< e4m3 without infinities, torch.float8_e4m3fn */
  WEFT_FP8E5 = 8    /**< e5m2, torch.float8_e5m2 */
} weft_element;

/** "fp16" and the like, as docs/LibraryFormat.md spells them; "unknown" for a number that is no element. */
WEFT_API const char *weft_element_name(int element);

/** Axes that a tensor has at most. */
#define WEFT_MAX_RANK 8

/** A tensor in a device's memory. The last axis is contiguous; others may have any stride. */
typedef struct weft_tensor {
  weft_address address; /**< of the first element; 0 where there is none */
  int32_t element;      /**< a weft_element */
  int32_t rank;
  int64_t shape[WEFT_MAX_RANK];
  int64_t strides[WEFT_MAX_RANK]; /**< in elements */
} weft_tensor;

/** A contiguous tensor. */
static inline weft_tensor weft_tensor_contiguous(weft_address address, weft_element element, int32_t rank,
                                                 const int64_t *shape) {
  weft_tensor tensor;
  int64_t stride = 1;
  int32_t axis;
  tensor.address = address;
  tensor.element = (int32_t)element;
  tensor.rank = rank;
  for (axis = WEFT_MAX_RANK; axis-- > 0;) {
    tensor.shape[axis] = axis < rank ? shape[axis] : 0;
    tensor.strides[axis] = axis < rank ? stride : 0;
    stride *= axis < rank ? shape[axis] : 1;
  }
  return tensor;
}

/** What a program takes or gives. Strings live as long as the program. */
typedef struct weft_tensor_info {
  const char *name;
  int32_t element;                 /**< a weft_element */
  int32_t rank;                    /**< number of axes */
  int32_t aligned;                 /**< 1: the address and every stride must be multiples of 16 bytes */
  const char *dims[WEFT_MAX_RANK]; /**< sizes: integers, symbols ("N") or expressions over them ("4*Hkv") */
} weft_tensor_info;

/** A program of a library on one device: several launches that make outputs from inputs. */
typedef struct weft_program weft_program;

/** Number of programs, 0 for NULL. */
WEFT_API size_t weft_library_program_count(const weft_library *library);
/** Name of a program; NULL for an index out of range. */
WEFT_API const char *weft_library_program_name(const weft_library *library, size_t program);

/**
 * Finds a program and makes it ready to run on a device. It keeps what it needs of both alive. Nothing is loaded: the
 * first run that takes a plan loads its kernels, or weft_program_load. WEFT_NOT_FOUND names the programs that there
 * are; WEFT_WRONG_TARGET: none of its plans runs on the device.
 */
WEFT_API weft_status weft_program_open(weft_library *library, weft_device *device, const char *name,
                                       weft_program **program, weft_error **error);
/**
 * Loads the kernels of all plans, so that no run loads any, as under the capture of a CUDA graph. WEFT_CORRUPT and
 * WEFT_WRONG_TARGET, naming the part and with the driver's words, for one that does not load.
 */
WEFT_API weft_status weft_program_load(const weft_program *program, weft_error **error);
/** Lets go of a program. */
WEFT_API void weft_program_close(weft_program *program);
/** The target whose plan runs: "sm_90a". NULL for NULL. */
WEFT_API const char *weft_program_target(const weft_program *program);
/** Number of inputs, 0 for NULL. */
WEFT_API size_t weft_program_input_count(const weft_program *program);
/** Number of outputs, 0 for NULL. */
WEFT_API size_t weft_program_output_count(const weft_program *program);
/** Number of launches of the plan that serves sizes for which no other was chosen, 0 for NULL. */
WEFT_API size_t weft_program_launch_count(const weft_program *program);
/** Facts of an input. */
WEFT_API weft_status weft_program_get_input(const weft_program *program, size_t input, weft_tensor_info *info,
                                            weft_error **error);
/** Facts of an output. */
WEFT_API weft_status weft_program_get_output(const weft_program *program, size_t output, weft_tensor_info *info,
                                             weft_error **error);
/**
 * Which of the program's plans a run on inputs of these elements and shapes takes (addresses and strides are not looked
 * at): its number among the "variants" that the library's manifest has, the first whose guards these sizes meet.
 */
WEFT_API weft_status weft_program_choose(const weft_program *program, const weft_tensor *inputs, size_t input_count,
                                         size_t *variant, weft_error **error);
/**
 * What a run on inputs of these elements and shapes needs (addresses and strides are not looked at): fills in
 * `output_count` outputs, contiguous and at address 0, and the bytes of the workspace; each may be NULL.
 */
WEFT_API weft_status weft_program_require(const weft_program *program, const weft_tensor *inputs, size_t input_count,
                                          weft_tensor *outputs, size_t output_count, uint64_t *workspace_bytes,
                                          weft_error **error);
/**
 * Checks everything, then queues the whole program on `stream` and returns; on the simulator it has run by then. The
 * workspace is memory for values in between, as many bytes as weft_program_require says, at a multiple of 256; it must
 * not be used by anything else until the stream has passed the run. What outputs held before does not matter.
 * WEFT_INVALID_ARGUMENT, before anything is queued: the text names the argument, what was expected and what came. Of an
 * input that says where packed sequences start the simulator looks at the numbers too; a GPU's are not waited for.
 * WEFT_FINDING: the simulator found a kernel at fault.
 */
WEFT_API weft_status weft_program_run(const weft_program *program, const weft_tensor *inputs, size_t input_count,
                                      const weft_tensor *outputs, size_t output_count, weft_address workspace,
                                      uint64_t workspace_bytes, weft_stream stream, weft_error **error);

/* ---- PTX without a library ------------------------------------------------------------------------------------- */

/** PTX loaded on a device. */
typedef struct weft_module weft_module;
/** An entry of a module. */
typedef struct weft_kernel weft_kernel;

/** Facts the driver reports of a loaded kernel; 0 where unknown. */
typedef struct weft_kernel_attributes {
  uint32_t registers;           /**< per thread */
  uint32_t local_bytes;         /**< per thread, spills included */
  uint32_t static_shared_bytes; /**< per block */
} weft_kernel_attributes;

/** Loads PTX text. WEFT_CORRUPT with the driver's log where it does not assemble. */
WEFT_API weft_status weft_module_load(weft_device *device, const char *ptx, weft_module **module, weft_error **error);
/** Unloads a module when its last kernel is closed. */
WEFT_API void weft_module_close(weft_module *module);
/**
 * Finds an entry and fixes what it is launched with: dynamic shared memory, and the types of its parameters as
 * signatures spell them ("*fp16", "i32"). WEFT_NOT_FOUND names the entries that there are; WEFT_INVALID_ARGUMENT where
 * the PTX declares other parameters, by their number and sizes.
 */
WEFT_API weft_status weft_module_kernel(weft_module *module, const char *entry, uint32_t shared_bytes,
                                        const char *const *types, size_t type_count, weft_kernel **kernel,
                                        weft_error **error);
/** Lets go of a kernel. */
WEFT_API void weft_kernel_close(weft_kernel *kernel);
/** Fills in the kernel's facts. */
WEFT_API weft_status weft_kernel_get_attributes(const weft_kernel *kernel, weft_kernel_attributes *attributes,
                                                weft_error **error);
/** Launches a kernel on `stream`. `cluster` may be NULL for none. Errors as for weft_library_launch. */
WEFT_API weft_status weft_kernel_launch(weft_kernel *kernel, weft_extent grid, weft_extent block,
                                        const weft_extent *cluster, const weft_value *values, size_t count,
                                        weft_stream stream, weft_error **error);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_H */
