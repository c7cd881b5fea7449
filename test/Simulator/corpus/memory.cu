// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Moving data: transposes, vectors, constant and local memory, structs by value, volatile and generic pointers.

extern "C" __global__ void transpose_padded(const float *x, float *y, int rows, int columns) {
  __shared__ float tile[32][33];
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    if (row + i < rows && column < columns)
      tile[threadIdx.y + i][threadIdx.x] = x[(row + i) * columns + column];
  __syncthreads();
  column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    if (row + i < columns && column < rows)
      y[(row + i) * rows + column] = tile[threadIdx.x][threadIdx.y + i];
}

extern "C" __global__ void scale_vectors(const float4 *x, float4 *y, float factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float4 v = __ldg(&x[i]);
  v.x *= factor, v.y += factor, v.z -= factor, v.w = v.w * factor + 1.0f;
  y[i] = v;
}

__constant__ float taps[9] = {1, 2, 1, 2, 4, 2, 1, 2, 1};

extern "C" __global__ void blur3x3(const float *x, float *y, int height, int width) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= height || column >= width)
    return;
  float sum = 0;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx) {
      const int r = min(max(row + dy, 0), height - 1), c = min(max(column + dx, 0), width - 1);
      sum += x[r * width + c] * taps[(dy + 1) * 3 + dx + 1];
    }
  y[row * width + column] = sum / 16;
}

// A table per thread with an index known only at run time: local memory.
extern "C" __global__ void digits_reversed(const unsigned *x, unsigned *y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned char digits[10];
  int count = 0;
  unsigned value = x[i];
  do {
    digits[count++] = value % 10;
    value /= 10;
  } while (value);
  unsigned result = 0;
  for (int d = 0; d < count; ++d)
    result = result * 10 + digits[d];
  y[i] = result;
}

struct Affine {
  float matrix[2][2];
  double shift[2];
  short count;
  char flag;
};

extern "C" __global__ void apply_affine(Affine map, const float2 *x, double2 *y) {
  const int i = threadIdx.x;
  if (i >= map.count)
    return;
  const float2 p = x[i];
  const double a = map.matrix[0][0] * p.x + map.matrix[0][1] * p.y + map.shift[0];
  const double b = map.matrix[1][0] * p.x + map.matrix[1][1] * p.y + map.shift[1];
  y[i] = map.flag ? make_double2(b, a) : make_double2(a, b);
}

// A pointer that is shared in some threads and global in others.
extern "C" __global__ void generic_pointer(const int *x, int *y) {
  __shared__ int local[128];
  local[threadIdx.x] = 1000 + threadIdx.x;
  __syncthreads();
  const int *from = x[threadIdx.x] & 1 ? local : x;
  y[threadIdx.x] = from[127 - threadIdx.x];
}

// Bytes, halfwords and 64-bit words of one buffer.
extern "C" __global__ void narrow_widths(const unsigned char *bytes, short *halves, long long *words, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  const signed char s = (signed char)bytes[i];
  halves[i] = (short)(s * 3 - bytes[n - 1 - i]);
  words[i] = (long long)s << 33 | bytes[i];
}

extern "C" __global__ void stencil_3d(const float *x, float *y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  const int k = blockIdx.z * blockDim.z + threadIdx.z;
  if (i >= n || j >= n || k >= n)
    return;
  const auto at = [&](int a, int b, int c) {
    return a < 0 || b < 0 || c < 0 || a >= n || b >= n || c >= n ? 0.0f : x[(c * n + b) * n + a];
  };
  y[(k * n + j) * n + i] = 6 * at(i, j, k) - at(i - 1, j, k) - at(i + 1, j, k) - at(i, j - 1, k) - at(i, j + 1, k) -
                           at(i, j, k - 1) - at(i, j, k + 1);
}
