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

// One scalar video instruction, its text as it stands in PTX.
#define SCALAR(row, text) asm(text : "=r"(y[(row) * n + i]) : "r"(p), "r"(q), "r"(c))

extern "C" __global__ void scalar_video(const unsigned *x, unsigned *y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  const unsigned p = x[i], q = x[n - 1 - i], c = x[(i + 7) % n];
  SCALAR(0, "vadd.s32.s32.s32.sat %0, %1, %2;");
  SCALAR(1, "vsub.u32.u32.s32.sat.add %0, %1.b3, %2.h1, %3;");
  SCALAR(2, "vabsdiff.u32.s32.u32.sat %0.b1, %1.h0, %2.b2, %3;");
  SCALAR(3, "vmin.s32.s32.u32.max %0, %1.h1, %2.b0, %3;");
  SCALAR(4, "vmax.s32.u32.s32.sat %0.h1, %1, %2, %3;");
  SCALAR(5, "vshl.s32.s32.u32.sat.clamp %0, %1.h0, %2.b0;");
  SCALAR(6, "vshr.u32.s32.u32.wrap.min %0, %1, %2, %3;");
  SCALAR(7, "vset.s32.u32.lt.add %0, %1.h0, %2.h1, %3;");
  SCALAR(8, "vmad.s32.s32.u32.sat.shr7 %0, %1, -%2.h0, %3;");
  SCALAR(9, "vmad.u32.u32.u32.po.shr15 %0, %1, %2, %3;");
  SCALAR(10, "vmad.s32.s32.u32 %0, %1.b1, %2.h1, -%3;");
}

extern "C" __global__ void selected_elements(const unsigned *x, unsigned *y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  const unsigned p = x[i], q = x[n - 1 - i], c = x[(i + 7) % n];
  SCALAR(0, "vadd2.u32.u32.u32 %0.h1, %1.h23, %2.h01, %3;");
  SCALAR(1, "vmax4.s32.s32.u32.add %0.b20, %1.b7351, %2.b0246, %3;");
}
