/* Part of Weft. SPDX-License-Identifier: Apache-2.0 */
/* Opens a PTX library, runs its vector addition and checks the sum. No Python, no compiler.
 *
 *   vector_add LIBRARY [DEVICE]      DEVICE: cuda:0, simulator, ...; by default what weft_default_device says
 */
#include <weft.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program with the reason where a call failed. */
static void check(weft_status status, weft_error *error) {
  if (status == WEFT_OK)
    return;
  fprintf(stderr, "vector_add: %s: %s\n", weft_status_name(status), weft_error_message(error));
  weft_error_free(error);
  exit(EXIT_FAILURE);
}

/* Elements that one program of the kernel handles: its BLOCK constant, as the manifest has it. */
static uint32_t block_of(const weft_library *library) {
  static const char key[] = "\"BLOCK\":";
  const char *at = strstr(weft_library_manifest(library), key);
  if (!at) {
    fprintf(stderr, "vector_add: expected a kernel with a constant 'BLOCK'\n");
    exit(EXIT_FAILURE);
  }
  return (uint32_t)strtoul(at + sizeof key - 1, NULL, 10);
}

/* Device memory that holds `count` numbers. */
static weft_address upload(weft_device *device, const float *numbers, size_t count) {
  weft_error *error = NULL;
  weft_address address = 0;
  check(weft_buffer_alloc(device, count * sizeof *numbers, &address, &error), error);
  check(weft_buffer_write(device, address, numbers, count * sizeof *numbers, NULL, &error), error);
  return address;
}

/* How many elements of x + y the device gets wrong. */
static int count_wrong(weft_library *library, weft_device *device, int n) {
  float *x = malloc(3 * sizeof *x * (size_t)n), *y = x + n, *z = y + n;
  if (!x)
    return n;
  for (int i = 0; i < n; ++i) {
    x[i] = (float)i / 3;
    y[i] = 1 / (float)(i + 1);
    z[i] = -1;
  }
  weft_address on_x = upload(device, x, (size_t)n), on_y = upload(device, y, (size_t)n),
               on_z = upload(device, z, (size_t)n);
  weft_value values[] = {weft_value_address(on_x), weft_value_address(on_y), weft_value_address(on_z),
                         weft_value_integer(n)};
  uint32_t block = block_of(library);
  weft_extent grid = {((uint32_t)n + block - 1) / block, 1, 1};
  weft_error *error = NULL;
  check(weft_library_launch(library, device, weft_library_kernel_name(library, 0), &grid, values, 4, NULL, &error),
        error);
  check(weft_buffer_read(device, z, on_z, sizeof *z * (size_t)n, NULL, &error), error);
  int wrong = 0;
  for (int i = 0; i < n; ++i)
    wrong += z[i] != x[i] + y[i];
  weft_address buffers[] = {on_x, on_y, on_z};
  for (int i = 0; i < 3; ++i)
    check(weft_buffer_free(device, buffers[i], &error), error);
  free(x);
  return wrong;
}

int main(int count, char **arguments) {
  if (count != 2 && count != 3) {
    fprintf(stderr, "usage: vector_add LIBRARY [DEVICE]\n");
    return 2;
  }
  if (weft_abi_version() != WEFT_ABI_VERSION) {
    fprintf(stderr, "vector_add: expected libweft with the interface %d, but got %d\n", WEFT_ABI_VERSION,
            weft_abi_version());
    return EXIT_FAILURE;
  }
  weft_error *error = NULL;
  weft_library *library = NULL;
  weft_device *device = NULL;
  check(weft_library_open(arguments[1], &library, &error), error);
  check(weft_device_open(count == 3 ? arguments[2] : NULL, &device, &error), error);
  int wrong = 0, sizes[] = {1, 1000, 98432};
  for (int i = 0; i < 3; ++i) {
    int here = count_wrong(library, device, sizes[i]);
    printf("vector add, n = %d on %s: %s\n", sizes[i], weft_device_name(device), here ? "wrong" : "right, bit for bit");
    wrong += here;
  }
  weft_device_close(device);
  weft_library_close(library);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
