// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Calls of device functions, direct and through a table.

__device__ __noinline__ float polynomial(const float *c, int degree, float x) {
  float value = 0;
  for (int i = degree; i >= 0; --i)
    value = value * x + c[i];
  return value;
}

__device__ __noinline__ float2 divide(float2 a, float2 b) {
  const float scale = 1.0f / (b.x * b.x + b.y * b.y);
  return make_float2((a.x * b.x + a.y * b.y) * scale, (a.y * b.x - a.x * b.y) * scale);
}

extern "C" __global__ void call_functions(const float *c, const float2 *x, float2 *y, int n) {
  const int i = threadIdx.x;
  if (i < n) {
    const float2 q = divide(x[i], x[n - 1 - i]);
    y[i] = make_float2(polynomial(c, 3, q.x), polynomial(c + 1, 2, q.y));
  }
}

__device__ __noinline__ int op_add(int a, int b) { return a + b; }
__device__ __noinline__ int op_sub(int a, int b) { return a - b; }
__device__ __noinline__ int op_mul(int a, int b) { return a * b; }
__device__ __noinline__ int op_max(int a, int b) { return a > b ? a : b; }
using Operation = int (*)(int, int);
__device__ Operation operations[] = {op_add, op_sub, op_mul, op_max};

extern "C" __global__ void call_table(const int *which, const int *a, const int *b, int *y) {
  const int i = threadIdx.x;
  y[i] = operations[which[i]](a[i], b[i]);
}

// Memory of a size that only the run knows, in a function that gives it back each time.
__device__ __noinline__ int reversed_sum(const int *x, int count) {
  int *copy = static_cast<int *>(alloca(count * sizeof(int)));
  for (int i = 0; i < count; ++i)
    copy[count - 1 - i] = x[i];
  int sum = 0;
  for (int i = 0; i < count; ++i)
    sum = 3 * sum + copy[i];
  return sum;
}

extern "C" __global__ void allocate_on_stack(const int *x, int *y, int n) {
  const int i = threadIdx.x;
  int sum = 0;
  for (int round = 0; round < 40; ++round) // 40 rounds of 2 KiB are more than the stack
    sum += reversed_sum(x + round % 4, n - i % 8);
  int *own = static_cast<int *>(alloca((i + 1) * sizeof(int)));
  for (int j = 0; j <= i; ++j)
    own[j] = x[j] + i;
  y[i] = sum + own[i / 2];
}

// Functions that call themselves: as deep as the run says, through each other, and with pointers to callers' variables.
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ int is_odd(int n);
__device__ __noinline__ int is_even(int n) { return n == 0 ? 1 : is_odd(n - 1); }
__device__ __noinline__ int is_odd(int n) { return n == 0 ? 0 : is_even(n - 1); }

__device__ void quicksort(int *x, int low, int high) {
  if (low >= high)
    return;
  const int middle = x[(low + high) / 2];
  int i = low, j = high;
  while (i <= j) {
    while (x[i] < middle)
      ++i;
    while (x[j] > middle)
      --j;
    if (i <= j) {
      const int other = x[i];
      x[i++] = x[j];
      x[j--] = other;
    }
  }
  quicksort(x, low, j);
  quicksort(x, i, high);
}

struct Link {
  int value;
  const Link *up;
};
__device__ __noinline__ int chain(const Link *up, int depth, int n) {
  const Link own{depth * depth + n, up};
  if (depth < n)
    return chain(&own, depth + 1, n) - own.value;
  int sum = 0;
  for (const Link *at = &own; at; at = at->up)
    sum = 3 * sum + at->value;
  return sum;
}

extern "C" __global__ void recurse(int *x, int n, int *y) {
  const int i = threadIdx.x;
  quicksort(x + n * i, 0, n - 1);
  y[3 * i] = fibonacci(i % 11);
  y[3 * i + 1] = is_even(i);
  y[3 * i + 2] = chain(nullptr, 0, i % 9);
}
