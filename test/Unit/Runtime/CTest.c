/* Part of Weft. SPDX-License-Identifier: Apache-2.0 */
/* weft.h from C11: each function called once at least, with what it should refuse. */
#include <weft.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      printf("line %d: %s\n", __LINE__, #condition);                                                                   \
      ++failures;                                                                                                      \
    }                                                                                                                  \
  } while (0)

/* Success, or a printed reason. */
static int ok(weft_status status, weft_error *error) {
  if (status != WEFT_OK)
    printf("%s: %s\n", weft_status_name(status), weft_error_message(error));
  weft_error_free(error);
  return status == WEFT_OK;
}

static void test_null(void) {
  weft_error *error = NULL;
  CHECK(weft_device_open("simulator", NULL, &error) == WEFT_INVALID_ARGUMENT);
  CHECK(strlen(weft_error_message(error)) > 0);
  weft_error_free(error);
  weft_error_free(NULL);
  CHECK(strcmp(weft_error_message(NULL), "") == 0);
  CHECK(weft_library_open(NULL, NULL, NULL) == WEFT_INVALID_ARGUMENT);
  CHECK(weft_buffer_alloc(NULL, 1, NULL, NULL) == WEFT_INVALID_ARGUMENT);
  CHECK(weft_stream_synchronize(NULL, NULL, NULL) == WEFT_INVALID_ARGUMENT);
  CHECK(weft_kernel_launch(NULL, (weft_extent){1, 1, 1}, (weft_extent){1, 1, 1}, NULL, NULL, 0, NULL, NULL) ==
        WEFT_INVALID_ARGUMENT);
  CHECK(weft_device_name(NULL) == NULL && weft_device_model(NULL) == NULL && weft_library_manifest(NULL) == NULL);
  CHECK(weft_library_kernel_count(NULL) == 0 && weft_library_kernel_name(NULL, 0) == NULL);
  weft_program *program = (weft_program *)1;
  CHECK(weft_program_open(NULL, NULL, "x", &program, NULL) == WEFT_INVALID_ARGUMENT && program == NULL);
  CHECK(weft_program_load(NULL, NULL) == WEFT_INVALID_ARGUMENT);
  CHECK(weft_program_run(NULL, NULL, 0, NULL, 0, 0, 0, NULL, NULL) == WEFT_INVALID_ARGUMENT);
  CHECK(weft_program_require(NULL, NULL, 0, NULL, 0, NULL, NULL) == WEFT_INVALID_ARGUMENT);
  CHECK(weft_program_target(NULL) == NULL && weft_program_input_count(NULL) == 0);
  CHECK(weft_library_program_count(NULL) == 0 && weft_library_program_name(NULL, 0) == NULL);
  int64_t shape[2] = {3, 4};
  weft_tensor tensor = weft_tensor_contiguous(256, WEFT_BF16, 2, shape);
  CHECK(tensor.shape[1] == 4 && tensor.strides[0] == 4 && tensor.strides[1] == 1 && tensor.rank == 2);
  weft_program_close(NULL);
  weft_device_close(NULL);
  weft_library_close(NULL);
  weft_module_close(NULL);
  weft_kernel_close(NULL);
}

static void test_refusals(void) {
  weft_error *error = NULL;
  weft_device *device = (weft_device *)1;
  CHECK(weft_device_open("abacus", &device, &error) == WEFT_INVALID_ARGUMENT);
  CHECK(device == NULL);
  CHECK(strstr(weft_error_message(error), "'abacus'") != NULL);
  weft_error_free(error);
  weft_library *library = NULL;
  CHECK(weft_library_open("/nonexistent", &library, &error) == WEFT_NOT_FOUND);
  CHECK(strstr(weft_error_message(error), "/nonexistent") != NULL);
  weft_error_free(error);
  CHECK(strcmp(weft_status_name(WEFT_CORRUPT), "corrupt") == 0);
  CHECK(strcmp(weft_status_name(77), "unknown") == 0);
}

static void test_memory(void) {
  weft_error *error = NULL;
  weft_device *device = NULL;
  weft_device_properties facts;
  weft_address a = 0, b = 0;
  weft_stream stream = NULL;
  weft_event begin = NULL, end = NULL;
  char host[4] = {1, 2, 3, 4}, back[4] = {0};
  float milliseconds = -1;
  if (!ok(weft_device_open("simulator", &device, &error), error)) {
    ++failures;
    return;
  }
  CHECK(strcmp(weft_device_name(device), "simulator") == 0);
  CHECK(ok(weft_device_get_properties(device, &facts, &error), error) && facts.simulated && facts.major == 9);
  CHECK(ok(weft_buffer_alloc(device, 4, &a, &error), error) && a % 256 == 0);
  CHECK(ok(weft_buffer_alloc(device, 4, &b, &error), error));
  CHECK(ok(weft_stream_create(device, &stream, &error), error));
  CHECK(ok(weft_buffer_write(device, a, host, 4, stream, &error), error));
  CHECK(ok(weft_buffer_copy(device, b, a, 4, stream, &error), error));
  CHECK(ok(weft_buffer_fill(device, b, 9, 1, stream, &error), error));
  CHECK(ok(weft_buffer_read(device, back, b, 4, stream, &error), error));
  CHECK(back[0] == 9 && back[1] == 2 && back[3] == 4);
  CHECK(weft_buffer_read(device, back, b, 5000, stream, NULL) == WEFT_INVALID_ARGUMENT);
  CHECK(ok(weft_event_create(device, &begin, &error), error) && ok(weft_event_create(device, &end, &error), error));
  CHECK(ok(weft_event_record(device, begin, stream, &error), error) &&
        ok(weft_event_record(device, end, stream, &error), error));
  CHECK(ok(weft_event_elapsed(device, begin, end, &milliseconds, &error), error) && milliseconds >= 0);
  CHECK(ok(weft_event_destroy(device, begin, &error), error) && ok(weft_event_destroy(device, end, &error), error));
  CHECK(ok(weft_stream_synchronize(device, stream, &error), error) &&
        ok(weft_stream_destroy(device, stream, &error), error));
  CHECK(ok(weft_buffer_free(device, a, &error), error) && ok(weft_buffer_free(device, b, &error), error));
  CHECK(weft_buffer_free(device, b, NULL) != WEFT_OK);
  weft_device_close(device);
}

int main(void) {
  char name[4];
  CHECK(weft_default_device(NULL, 0) > 3 && weft_default_device(name, sizeof name) > 3 && strlen(name) == 3);
  CHECK(strlen(weft_version()) > 0 && weft_abi_version() == WEFT_ABI_VERSION);
  test_null();
  test_refusals();
  test_memory();
  printf(failures ? "%d failed\n" : "passed\n", failures);
  return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
