// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Bytes and halfwords side by side in a word.

extern "C" __global__ void packed_bytes(const unsigned *x, unsigned *y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  const unsigned p = x[i], q = x[n - 1 - i];
  y[i] = __vabsdiffu4(p, q);
  y[n + i] = __vsadu4(p, q);
  y[2 * n + i] = __vadd4(p, q);
  y[3 * n + i] = __vmaxs2(p, q);
  y[4 * n + i] = __vcmpgtu4(p, q);
  y[5 * n + i] = __vavgu4(p, q);
  y[6 * n + i] = __vaddss2(p, q);
  y[7 * n + i] = __vsubus4(p, q);
}
