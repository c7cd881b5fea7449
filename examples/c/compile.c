/* Part of Weft. SPDX-License-Identifier: Apache-2.0 */
/* Compiles a kernel from its tile IR and runs it: both of Weft's libraries in one C program, without Python.
 *
 *   compile [DEVICE]      DEVICE: cuda:0, simulator, ...; by default what weft_default_device says
 */
#include <weft-compiler.h>
#include <weft.h>

#include <stdio.h>
#include <stdlib.h>

/* x[i] = x[i] * x[i] for i < n, 256 elements a program. */
static const char *const KERNEL =
    "func.func @square(%x: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, "
    "stages = 3>} {\n"
    "  %block = arith.constant 256 : i32\n"
    "  %program = tile.program_id x : i32\n"
    "  %first = arith.muli %program, %block : i32\n"
    "  %range = tile.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>\n"
    "  %base = tile.splat %first : i32 -> tensor<256xi32>\n"
    "  %offsets = arith.addi %base, %range : tensor<256xi32>\n"
    "  %end = tile.splat %n : i32 -> tensor<256xi32>\n"
    "  %mask = arith.cmpi slt, %offsets, %end : tensor<256xi32>\n"
    "  %start = tile.splat %x : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>>\n"
    "  %places = tile.addptr %start, %offsets : tensor<256x!tile.ptr<f32>>, tensor<256xi32>\n"
    "  %values = tile.load %places, %mask : tensor<256x!tile.ptr<f32>>\n"
    "  %squares = arith.mulf %values, %values : tensor<256xf32>\n"
    "  tile.store %places, %squares, %mask : tensor<256x!tile.ptr<f32>>\n"
    "  return\n"
    "}\n";

enum { BLOCK = 256, THREADS = 4 * 32, COUNT = 1000 };

static void check(weft_status status, weft_error *error) {
  if (status == WEFT_OK)
    return;
  fprintf(stderr, "compile: %s: %s\n", weft_status_name(status), weft_error_message(error));
  weft_error_free(error);
  exit(EXIT_FAILURE);
}

/* What the compiler reported, on standard error. */
static void print_diagnostics(const weftc_context *context) {
  for (size_t i = 0; i < weftc_context_diagnostic_count(context); ++i) {
    weftc_diagnostic each = weftc_context_diagnostic(context, i);
    fprintf(stderr, "%s:%u:%u: %s\n", each.file, each.line, each.column, each.message);
  }
}

/* The kernel's PTX, which goes to weftc_string_free; NULL with what was reported where it does not compile. */
static char *compiled(void) {
  weftc_context *context = weftc_context_create();
  weftc_module *module = weftc_module_parse(context, KERNEL, "square.mlir");
  char *ptx = NULL, *info = NULL, *error = NULL;
  if (module && weftc_compile(module, "{\"target\": \"sm_80\"}", &ptx, &info, &error) != WEFTC_OK)
    fprintf(stderr, "compile: %s\n", error);
  print_diagnostics(context);
  weftc_string_free(info);
  weftc_string_free(error);
  weftc_module_destroy(module);
  weftc_context_destroy(context);
  return ptx;
}

/* Squares numbers on the device, in place. */
static void square(weft_device *device, const char *ptx, float *numbers, size_t bytes) {
  static const char *const types[] = {"*fp32", "i32"};
  weft_error *error = NULL;
  weft_module *module = NULL;
  weft_kernel *kernel = NULL;
  weft_address address = 0;
  check(weft_module_load(device, ptx, &module, &error), error);
  check(weft_module_kernel(module, "square", 0, types, 2, &kernel, &error), error);
  check(weft_buffer_alloc(device, bytes, &address, &error), error);
  check(weft_buffer_write(device, address, numbers, bytes, NULL, &error), error);
  weft_value values[] = {weft_value_address(address), weft_value_integer(COUNT)};
  weft_extent grid = {(COUNT + BLOCK - 1) / BLOCK, 1, 1}, block = {THREADS, 1, 1};
  check(weft_kernel_launch(kernel, grid, block, NULL, values, 2, NULL, &error), error);
  check(weft_buffer_read(device, numbers, address, bytes, NULL, &error), error);
  check(weft_buffer_free(device, address, &error), error);
  weft_kernel_close(kernel);
  weft_module_close(module);
}

int main(int count, char **arguments) {
  char *ptx = compiled();
  if (!ptx)
    return EXIT_FAILURE;
  weft_error *error = NULL;
  weft_device *device = NULL;
  check(weft_device_open(count > 1 ? arguments[1] : NULL, &device, &error), error);
  float numbers[COUNT];
  for (int i = 0; i < COUNT; ++i)
    numbers[i] = (float)i / 7;
  square(device, ptx, numbers, sizeof numbers);
  int wrong = 0;
  for (int i = 0; i < COUNT; ++i)
    wrong += numbers[i] != (float)i / 7 * ((float)i / 7);
  printf("square, compiled by Weft %s, n = %d on %s: %s\n", weftc_version(), COUNT, weft_device_name(device),
         wrong ? "wrong" : "right, bit for bit");
  weftc_string_free(ptx);
  weft_device_close(device);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
