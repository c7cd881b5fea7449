// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Instructions that CUDA C++ seldom reaches, one by one in inline PTX.

#define OP1(type, constraint, text, a)                                                                                 \
  ({                                                                                                                   \
    type r;                                                                                                            \
    asm volatile(text " %0, %1;" : "=" constraint(r) : constraint(a));                                                 \
    r;                                                                                                                 \
  })
#define OP2(type, constraint, text, a, b)                                                                              \
  ({                                                                                                                   \
    type r;                                                                                                            \
    asm volatile(text " %0, %1, %2;" : "=" constraint(r) : constraint(a), constraint(b));                              \
    r;                                                                                                                 \
  })
#define OP3(type, constraint, text, a, b, c)                                                                           \
  ({                                                                                                                   \
    type r;                                                                                                            \
    asm volatile(text " %0, %1, %2, %3;" : "=" constraint(r) : constraint(a), constraint(b), constraint(c));           \
    r;                                                                                                                 \
  })

extern "C" __global__ void bit_instructions(const unsigned *x, unsigned *y, int n) {
  const int i = threadIdx.x;
  if (i >= n)
    return;
  const unsigned a = x[i], b = x[(i + 1) % n], c = x[(i + 2) % n];
  unsigned *out = y + i;
  out[0 * n] = OP3(unsigned, "r", "bfe.u32", a, b & 31, c & 31);
  out[1 * n] = OP3(unsigned, "r", "bfe.s32", a, b & 31, c & 31);
  asm volatile("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(out[2 * n]) : "r"(a), "r"(b), "r"(c & 31), "r"(c >> 5 & 31));
  asm volatile("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(out[3 * n]) : "r"(a), "r"(b), "r"(c));
  out[4 * n] = OP3(unsigned, "r", "shf.l.wrap.b32", a, b, c);
  out[5 * n] = OP3(unsigned, "r", "shf.r.clamp.b32", a, b, c & 63);
  out[6 * n] = OP3(unsigned, "r", "prmt.b32.f4e", a, b, c);
  out[7 * n] = OP3(unsigned, "r", "prmt.b32.rc16", a, b, c);
  out[8 * n] = OP1(unsigned, "r", "bfind.s32", a);
  out[9 * n] = OP1(unsigned, "r", "bfind.shiftamt.u32", a);
  out[10 * n] = OP3(unsigned, "r", "fns.b32", a, b & 31, (c & 7) - 3);
  out[11 * n] = OP2(unsigned, "r", "bmsk.clamp.b32", b & 63, c & 63);
  out[12 * n] = OP2(unsigned, "r", "szext.wrap.s32", a, b);
  out[13 * n] = OP1(unsigned, "r", "cnot.b32", a & 1);
  out[14 * n] = OP2(unsigned, "r", "mul24.hi.u32", a, b);
  out[15 * n] = OP3(unsigned, "r", "mad24.lo.s32", a, b, c);
  out[16 * n] = OP3(unsigned, "r", "mad.hi.sat.s32", a, b, c);
  out[17 * n] = OP2(unsigned, "r", "add.sat.s32", a, b);
  out[18 * n] = OP2(unsigned, "r", "sub.sat.s32", a, b);
  out[19 * n] = OP3(unsigned, "r", "slct.u32.s32", a, b, c);
  out[20 * n] = OP3(unsigned, "r", "dp2a.hi.s32.u32", a, b, c);
}

// A 96-bit sum, difference and product by carries.
extern "C" __global__ void carry_chains(const unsigned *x, unsigned *y) {
  const unsigned *a = x + threadIdx.x * 6, *b = a + 3;
  unsigned *out = y + threadIdx.x * 9;
  asm volatile("add.cc.u32 %0, %3, %6;\n\t"
               "addc.cc.u32 %1, %4, %7;\n\t"
               "addc.u32 %2, %5, %8;"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(b[0]), "r"(b[1]), "r"(b[2]));
  asm volatile("sub.cc.u32 %0, %3, %6;\n\t"
               "subc.cc.u32 %1, %4, %7;\n\t"
               "subc.u32 %2, %5, %8;"
               : "=r"(out[3]), "=r"(out[4]), "=r"(out[5])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(b[0]), "r"(b[1]), "r"(b[2]));
  asm volatile("mul.lo.u32 %0, %3, %5;\n\t"
               "mul.hi.u32 %1, %3, %5;\n\t"
               "mad.lo.cc.u32 %1, %4, %5, %1;\n\t"
               "madc.hi.u32 %2, %4, %5, 0;"
               : "=&r"(out[6]), "=&r"(out[7]), "=&r"(out[8])
               : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

extern "C" __global__ void float_instructions(const float *x, float *y, int n) {
  const int i = threadIdx.x;
  if (i >= n)
    return;
  const float a = x[i], b = x[(i + 1) % n];
  float *out = y + i;
  out[0 * n] = OP1(float, "f", "cvt.rni.f32.f32", a);
  out[1 * n] = OP1(float, "f", "cvt.rpi.f32.f32", a);
  out[2 * n] = OP1(float, "f", "cvt.sat.f32.f32", a);
  out[3 * n] = OP2(float, "f", "copysign.f32", a, b);
  out[4 * n] = OP2(float, "f", "add.sat.f32", a, b);
  out[5 * n] = OP2(float, "f", "min.NaN.f32", a, b);
  out[6 * n] = OP2(float, "f", "max.NaN.f32", a, b);
  out[7 * n] = OP1(float, "f", "tanh.approx.f32", a);
  out[8 * n] = OP1(float, "f", "ex2.approx.ftz.f32", a);
  out[9 * n] = OP2(float, "f", "div.full.f32", a, b);
  out[10 * n] = OP1(float, "f", "sqrt.rz.f32", a *a + 1.0f);
  out[11 * n] = OP2(float, "f", "set.gt.f32.f32", a, b);
  unsigned tf32, test;
  asm volatile("cvt.rna.tf32.f32 %0, %1;" : "=r"(tf32) : "f"(a));
  out[12 * n] = __uint_as_float(tf32);
  asm volatile("{ .reg .pred p; testp.subnormal.f32 p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(test) : "f"(a * 1e-38f));
  out[13 * n] = (float)test;
  asm volatile("{ .reg .pred p, q, r; mov.pred r, 1; setp.lt.and.f32 p|q, %1, %2, r; selp.u32 %0, 1, 0, q; }"
               : "=r"(test)
               : "f"(a), "f"(b));
  out[14 * n] = (float)test;
}

extern "C" __global__ void float_conversions(const float *x, int *y, int n) {
  const int i = threadIdx.x;
  if (i >= n)
    return;
  const float a = x[i];
  int *out = y + i;
  unsigned short half;
  unsigned pair;
  asm volatile("cvt.rzi.s32.f32 %0, %1;" : "=r"(out[0 * n]) : "f"(a));
  asm volatile("cvt.rmi.u32.f32 %0, %1;" : "=r"(out[1 * n]) : "f"(a));
  asm volatile("{ .reg .b32 t; cvt.rni.s8.f32 t, %1; cvt.s32.s8 %0, t; }" : "=r"(out[2 * n]) : "f"(a));
  asm volatile("cvt.rz.f16.f32 %0, %1;" : "=h"(half) : "f"(a));
  out[3 * n] = half;
  asm volatile("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(a), "f"(-a));
  out[4 * n] = (int)pair;
  asm volatile("cvt.rz.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(a), "f"(a * 0.3f));
  out[5 * n] = (int)pair;
  asm volatile("cvt.sat.s8.s32 %0, %1;" : "=r"(out[6 * n]) : "r"((int)a));
  asm volatile("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(out[7 * n]) : "r"((int)a), "r"((int)(a * 3)), "r"(i));
}
