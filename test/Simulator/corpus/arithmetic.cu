// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Arithmetic that compiles to long sequences or to rare instructions.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

// The C library's functions, each with its slow paths.
extern "C" __global__ void elementary(const float *x, float *y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  const float v = x[i];
  y[i] = sinf(v);
  y[n + i] = cosf(v);
  y[2 * n + i] = expf(v * 0.01f);
  y[3 * n + i] = logf(fabsf(v) + 1e-30f);
  y[4 * n + i] = tanhf(v * 0.1f);
  y[5 * n + i] = powf(fabsf(v), 0.37f);
  y[6 * n + i] = erff(v * 0.05f);
  y[7 * n + i] = atan2f(v, 3.0f);
  y[8 * n + i] = cbrtf(v);
  y[9 * n + i] = fmodf(v, 1.7f);
}

extern "C" __global__ void elementary_fast(const float *x, float *y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  const float v = x[i];
  y[i] = __sinf(v);
  y[n + i] = __expf(v);
  y[2 * n + i] = __logf(fabsf(v) + 0.5f);
  y[3 * n + i] = __fdividef(v, 3.3f);
  y[4 * n + i] = rsqrtf(fabsf(v) + 0.1f);
  y[5 * n + i] = __powf(fabsf(v) + 0.1f, 1.3f);
}

extern "C" __global__ void doubles(const double *x, double *y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  const double v = x[i];
  y[i] = sqrt(fabs(v)) / (1.0 + v * v);
  y[n + i] = exp(-fabs(v)) * sin(v);
  y[2 * n + i] = rsqrt(fabs(v) + 0.5) + log(fabs(v) + 0.25);
  y[3 * n + i] = fma(v, v, -1.0) + rint(v * 3) + floor(v);
}

extern "C" __global__ void rounded(const float *x, float *y, int n) {
  const int i = threadIdx.x;
  const float a = x[i], b = x[n - 1 - i];
  y[i] = __fadd_rd(a, b) - __fadd_ru(a, b);
  y[n + i] = __fmul_rz(a, b);
  y[2 * n + i] = __fdiv_ru(a, b);
  y[3 * n + i] = __fsqrt_rd(fabsf(a));
  y[4 * n + i] = __fmaf_rz(a, b, 1.0f);
}

extern "C" __global__ void integers(const int *x, const unsigned *u, long long *y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  const int a = x[i], b = x[n - 1 - i] | 1;
  const unsigned p = u[i], q = u[n - 1 - i];
  const long long wide = (long long)a * b - (long long)q * 7;
  long long *out = y + i;
  out[0 * n] = a / b;
  out[1 * n] = a % b;
  out[2 * n] = (long long)(p / 10u) << 8 | q % 10u;
  out[3 * n] = wide / (b * 3ll + (b == 0));
  out[4 * n] = (long long)(((unsigned long long)p << 32 | q) % 1000003ull);
  out[5 * n] = __mulhi(a, b) + (long long)__umulhi(p, q) + (long long)__mul64hi(wide, wide);
  out[6 * n] = __popc(p) | __clz(p) << 8 | __ffs(p) << 16 | (long long)__brev(p) << 32;
  out[7 * n] = __byte_perm(p, q, 0x2637) + (long long)__funnelshift_r(p, q, 11) + __funnelshift_lc(p, q, 40);
  out[8 * n] = __sad(a, b, p) + (long long)__usad(p, q, 5);
  out[9 * n] = __dp2a_lo(a, b, 3);
  out[10 * n] = (long long)(p >> (q % 32)) + (a >> 31) + ((unsigned long long)q << (p % 64)) + min(a, b) + max(p, q);
  out[11 * n] = __clzll(wide) + __popcll(wide) + __ffsll(wide) + (long long)(__brevll(wide) >> 3);
}

extern "C" __global__ void wide_integers(const unsigned long long *x, unsigned long long *y, int n) {
  const int i = threadIdx.x;
  if (i >= n)
    return;
  unsigned __int128 a = (unsigned __int128)x[i] << 64 | x[n - 1 - i],
                    b = (unsigned __int128)x[(i * 7) % n] << 20 | 12345;
  const unsigned __int128 sum = a + b, difference = a - b, product = a * b;
  y[i * 6] = (unsigned long long)sum;
  y[i * 6 + 1] = (unsigned long long)(sum >> 64);
  y[i * 6 + 2] = (unsigned long long)difference;
  y[i * 6 + 3] = (unsigned long long)(difference >> 64);
  y[i * 6 + 4] = (unsigned long long)product;
  y[i * 6 + 5] = (unsigned long long)(product >> 64);
}

template <typename T> __device__ void divide_wide(const unsigned long long *x, unsigned long long *y) {
  const T a = (T)((unsigned __int128)x[1] << 64 | x[0]), b = (T)((unsigned __int128)x[3] << 64 | x[2]);
  const T quotient = a / b, rest = a % b;
  y[0] = (unsigned long long)quotient;
  y[1] = (unsigned long long)(quotient >> 64);
  y[2] = (unsigned long long)rest;
  y[3] = (unsigned long long)(rest >> 64);
}

extern "C" __global__ void wide_quotients(const unsigned long long *x, unsigned long long *y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    divide_wide<unsigned __int128>(x + 4 * i, y + 8 * i);
    divide_wide<__int128>(x + 4 * i, y + 8 * i + 4);
  }
}

extern "C" __global__ void halves(const half2 *x, half2 *y, int n) {
  const int i = threadIdx.x;
  if (i >= n)
    return;
  const half2 a = x[i], b = x[n - 1 - i];
  y[i] = __hfma2(a, b, __float2half2_rn(0.5f));
  y[n + i] = __hadd2(__hmul2(a, b), __hmax2(a, b));
  y[2 * n + i] = __hmin2(__habs2(a), __hneg2(b));
  y[3 * n + i] = h2exp2(__hmul2(a, __float2half2_rn(0.25f)));
  y[4 * n + i] = __floats2half2_rn(__low2float(a) * 3.0f, __high2float(b) / 3.0f);
  y[5 * n + i] =
      __halves2half2(__hgt(__low2half(a), __low2half(b)) ? __low2half(a) : __float2half(1.0f), __int2half_rn(i - 30));
}

extern "C" __global__ void bfloats(const __nv_bfloat162 *x, __nv_bfloat162 *y, int n) {
  const int i = threadIdx.x;
  if (i >= n)
    return;
  const __nv_bfloat162 a = x[i], b = x[n - 1 - i];
  y[i] = __hfma2(a, b, a);
  y[n + i] = __hadd2(a, b);
  y[2 * n + i] = __hmax2(a, __hneg2(b));
  y[3 * n + i] = __floats2bfloat162_rn(__low2float(a) * 1.7f, __high2float(b) + 0.01f);
}

extern "C" __global__ void atomics_mixed(float *f, double *d, half2 *h, int *i, unsigned long long *l) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(f, 0.25f);
  atomicAdd(d, t * 0.5);
  atomicAdd(h, __floats2half2_rn(1.0f, -1.0f));
  atomicAnd(i, ~(1 << t % 32));
  atomicOr(i + 1, 1 << t % 7);
  atomicXor(i + 2, t);
  atomicSub(i + 3, t);
  atomicDec((unsigned *)i + 4, 40u);
  atomicMax((long long *)l, (long long)t * (t & 1 ? 1 : -1));
  unsigned long long seen = l[1], assumed;
  do { // a product by compare-and-swap
    assumed = seen;
    seen = atomicCAS(&l[1], assumed, assumed * 3);
  } while (seen != assumed);
}

// Eight bits, on a target that has no instruction for them.
extern "C" __global__ void bytes_of_floats(const float *x, unsigned char *y, float *back, int n) {
  const int i = threadIdx.x;
  if (i >= n)
    return;
  const __nv_fp8_e4m3 a(x[i]);
  const __nv_fp8_e5m2 b(x[i]);
  y[i] = a.__x, y[n + i] = b.__x;
  back[i] = (float)a, back[n + i] = (float)b;
}
