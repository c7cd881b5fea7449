/* Part of Weft. SPDX-License-Identifier: Apache-2.0 */
/* Host time of a run in C: nanoseconds to choose a plan, and to choose, bind and queue it. benchmarks/call_overhead.py
 * builds this and runs it on the driver of the tests that stands in for a GPU's, whose launches do nothing.
 *
 *   run_in_c LIBRARY PROGRAM SIZE...      SIZE: those of every input, which are float32
 */
#include <weft.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 16, CALLS = 20000, ROUNDS = 20 };

struct run {
  const weft_program *program;
  weft_tensor inputs[MOST], outputs[MOST];
  size_t input_count, output_count;
  weft_address workspace;
  uint64_t workspace_bytes;
};

static void check(weft_status status, weft_error *error) {
  if (status == WEFT_OK)
    return;
  fprintf(stderr, "run_in_c: %s: %s\n", weft_status_name(status), weft_error_message(error));
  exit(EXIT_FAILURE);
}

static void choose(const struct run *run) {
  weft_error *error = NULL;
  size_t variant = 0;
  check(weft_program_choose(run->program, run->inputs, run->input_count, &variant, &error), error);
}

static void queue(const struct run *run) {
  weft_error *error = NULL;
  check(weft_program_run(run->program, run->inputs, run->input_count, run->outputs, run->output_count, run->workspace,
                         run->workspace_bytes, NULL, &error),
        error);
}

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return 1e9 * (double)at.tv_sec + (double)at.tv_nsec;
}

/* Nanoseconds a call, the best of several rounds. */
static double best(void (*call)(const struct run *), const struct run *run) {
  double least = 1e18;
  for (int round = 0; round < ROUNDS; ++round) {
    double started = now();
    for (int i = 0; i < CALLS; ++i)
      call(run);
    double each = (now() - started) / CALLS;
    least = each < least ? each : least;
  }
  return least;
}

int main(int count, char **words) {
  weft_library *library = NULL;
  weft_device *device = NULL;
  weft_program *program = NULL;
  weft_error *error = NULL;
  int64_t sizes[WEFT_MAX_RANK];
  int rank = count - 3;
  if (rank < 1 || rank > WEFT_MAX_RANK)
    return fprintf(stderr, "usage: run_in_c LIBRARY PROGRAM SIZE...\n"), EXIT_FAILURE;
  for (int axis = 0; axis < rank; ++axis)
    sizes[axis] = atoll(words[3 + axis]);
  check(weft_library_open(words[1], &library, &error), error);
  check(weft_device_open("cuda:0", &device, &error), error);
  check(weft_program_open(library, device, words[2], &program, &error), error);

  struct run run = {.program = program,
                    .input_count = weft_program_input_count(program),
                    .output_count = weft_program_output_count(program)};
  size_t bytes = 4;
  for (int axis = 0; axis < rank; ++axis)
    bytes *= (size_t)sizes[axis];
  for (size_t i = 0; i < run.input_count + run.output_count; ++i) {
    weft_address address = 0;
    check(weft_buffer_alloc(device, bytes, &address, &error), error);
    if (i < run.input_count)
      run.inputs[i] = weft_tensor_contiguous(address, WEFT_FP32, rank, sizes);
    else
      run.outputs[i - run.input_count].address = address;
  }
  weft_tensor needed[MOST];
  check(weft_program_require(program, run.inputs, run.input_count, needed, run.output_count, &run.workspace_bytes,
                             &error),
        error);
  for (size_t i = 0; i < run.output_count; ++i) {
    needed[i].address = run.outputs[i].address;
    run.outputs[i] = needed[i];
  }
  if (run.workspace_bytes)
    check(weft_buffer_alloc(device, run.workspace_bytes, &run.workspace, &error), error);
  check(weft_program_load(program, &error), error);

  queue(&run);
  printf("%.1f %.1f\n", best(choose, &run), best(queue, &run));
  return EXIT_SUCCESS;
}
