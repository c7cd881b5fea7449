// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The wrappers of cuda::ptx for sm_90a, each at least once, in clusters of two blocks of 64 threads.
#include <cooperative_groups.h>
#include <cuda/ptx>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;
using Barrier = std::uint64_t;

#define CLUSTER extern "C" __global__ void __cluster_dims__(2, 1, 1)

template <typename T> __device__ T *peer(T *mine) {
  cg::cluster_group cluster = cg::this_cluster();
  return cluster.map_shared_rank(mine, cluster.block_rank() ^ 1);
}
__device__ void meet() {
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
}
__device__ void start(Barrier *barrier, u32 count) {
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(barrier, count);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  ptx::barrier_cluster_arrive(ptx::sem_release);
  ptx::barrier_cluster_wait(ptx::sem_acquire);
}
__device__ void expect(Barrier *barrier, u32 bytes) {
  if (threadIdx.x == 0)
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, barrier, bytes);
}
__device__ void await(Barrier *barrier, u32 parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity))
    ;
}

// out[rank]: 64 words of st.async, 2 and 4 words a thread, then eight words that red.async made.
CLUSTER send(u32 *out) {
  __shared__ alignas(16) u32 one[64], two[128], four[256];
  __shared__ u32 sums[8];
  __shared__ Barrier full;
  const u32 t = threadIdx.x, rank = cg::this_cluster().block_rank(), me = 64 * rank + t;
  if (t < 8)
    sums[t] = t == 1 || t == 5 ? 0xffffffffu : 10;
  start(&full, 1);
  expect(&full, 64 * (4 + 8 + 16) + 8 * 64 * 4);
  Barrier *there = peer(&full);
  ptx::st_async(peer(one) + t, me, there);
  const u32 pair[2] = {me, me + 1}, quad[4] = {me, me + 1, me + 2, me + 3};
  ptx::st_async(peer(two) + 2 * t, pair, there);
  ptx::st_async(peer(four) + 4 * t, quad, there);
  u32 *to = peer(sums);
  ptx::red_async(ptx::op_add, to + 0, me, there);
  ptx::red_async(ptx::op_min, to + 1, me, there);
  ptx::red_async(ptx::op_max, to + 2, me, there);
  ptx::red_async(ptx::op_inc, to + 3, 1000u, there);
  ptx::red_async(ptx::op_dec, to + 4, 1000u, there);
  ptx::red_async(ptx::op_and_op, to + 5, ~me, there);
  ptx::red_async(ptx::op_or_op, to + 6, me, there);
  ptx::red_async(ptx::op_xor_op, to + 7, me, there);
  await(&full, 0);
  u32 *mine = out + rank * 512;
  mine[t] = one[t];
  for (u32 i = 0; i < 2; ++i)
    mine[64 + 2 * t + i] = two[2 * t + i];
  for (u32 i = 0; i < 4; ++i)
    mine[192 + 4 * t + i] = four[4 * t + i];
  if (t < 8)
    mine[448 + t] = sums[t];
  meet();
}

// Bulk copies and reductions into the other block.
CLUSTER bulk(u32 *out) {
  __shared__ alignas(16) u32 source[64], copied[64], added[64], most[64], bits[64];
  __shared__ Barrier full;
  const u32 t = threadIdx.x, rank = cg::this_cluster().block_rank(), me = 64 * rank + t;
  source[t] = me;
  added[t] = 1000;
  most[t] = 70;
  bits[t] = 5;
  ptx::fence_proxy_async(ptx::space_shared);
  start(&full, 1);
  expect(&full, 4 * 256);
  Barrier *there = peer(&full);
  if (t == 0) {
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, peer(copied), source, 256u, there);
    ptx::cp_reduce_async_bulk(ptx::space_cluster, ptx::space_shared, ptx::op_add, peer(added), source, 256u, there);
    ptx::cp_reduce_async_bulk(ptx::space_cluster, ptx::space_shared, ptx::op_max, peer(most), source, 256u, there);
    ptx::cp_reduce_async_bulk(ptx::space_cluster, ptx::space_shared, ptx::op_xor_op, peer(bits), source, 256u, there);
  }
  await(&full, 0);
  u32 *mine = out + rank * 256;
  mine[t] = copied[t];
  mine[64 + t] = added[t];
  mine[128 + t] = most[t];
  mine[192 + t] = bits[t];
  meet();
}

// Every way to arrive at an mbarrier and to wait for it; out counts what passed.
CLUSTER barriers(u32 *out) {
  __shared__ Barrier bar, remote;
  __shared__ u32 data[64], got;
  const u32 t = threadIdx.x, rank = cg::this_cluster().block_rank();
  if (t == 0)
    ptx::mbarrier_init(&remote, 64 + 1);
  start(&bar, 64);
  u32 passed = 0;
  data[t] = t + rank;
  Barrier state = ptx::mbarrier_arrive(&bar);
  while (!ptx::mbarrier_test_wait(&bar, state))
    ;
  passed += data[t ^ 32];
  state = ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar);
  while (!ptx::mbarrier_try_wait(ptx::sem_acquire, ptx::scope_cta, &bar, state))
    ;
  data[t] = 2 * t;
  state = ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, &bar, 1u);
  while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &bar, 0u, 100u))
    ;
  passed += data[t ^ 1];
  Barrier *there = peer(&remote);
  ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, there);
  if (t == 0) {
    ptx::mbarrier_expect_tx(ptx::sem_relaxed, ptx::scope_cluster, ptx::space_shared, &remote, 4u);
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, &remote);
    u32 *to = peer(&got);
    ptx::mbarrier_try_wait_parity(ptx::sem_relaxed, ptx::scope_cluster, &bar, 0u);
    ptx::st_async(to, 7u, there);
  }
  await(&remote, 0);
  if (t == 0)
    passed += 1000 * got;
  out[64 * rank + t] = passed;
  meet();
}

// All the fences; what they order is in other kernels.
CLUSTER fences(u32 *out) {
  ptx::fence(ptx::sem_sc, ptx::scope_cta);
  ptx::fence(ptx::sem_sc, ptx::scope_cluster);
  ptx::fence(ptx::sem_acq_rel, ptx::scope_gpu);
  ptx::fence(ptx::sem_acq_rel, ptx::scope_cluster);
  ptx::fence(ptx::sem_acquire, ptx::scope_cluster);
  ptx::fence(ptx::sem_release, ptx::scope_sys);
  ptx::fence_proxy_alias();
  ptx::fence_proxy_async();
  ptx::fence_proxy_async(ptx::space_global);
  ptx::fence_proxy_async(ptx::space_cluster);
  ptx::fence_proxy_tensormap_generic(ptx::sem_release, ptx::scope_cluster);
  ptx::fence_proxy_async_generic_sync_restrict(ptx::sem_acquire, ptx::space_cluster, ptx::scope_cluster);
  ptx::fence_proxy_async_generic_sync_restrict(ptx::sem_release, ptx::space_shared, ptx::scope_cluster);
  ptx::fence_sync_restrict(ptx::sem_acquire, ptx::space_cluster, ptx::scope_cluster);
  ptx::fence_sync_restrict(ptx::sem_release, ptx::space_shared, ptx::scope_cluster);
  ptx::barrier_cluster_arrive(ptx::sem_relaxed);
  ptx::barrier_cluster_wait();
  __shared__ u32 word;
  word = 1;
  out[64 * ptx::get_sreg_clusterid_x() + 32 * ptx::get_sreg_cluster_ctarank() + threadIdx.x % 32] =
      ptx::getctarank(ptx::space_cluster, peer(&word)) + 10 * ptx::get_sreg_cluster_nctarank();
}

// A map that the kernel makes of 32 x 16 words at x; its rows 8 and on for both blocks by multicast.
CLUSTER maps(u32 *x, char *scratch, u32 *out) {
  __shared__ alignas(128) char map[128];
  __shared__ alignas(128) u32 tile[128], rows[64];
  __shared__ Barrier full;
  const u32 t = threadIdx.x, rank = cg::this_cluster().block_rank();
  char *global = scratch + 128 * rank;
  if (t < 32)
    reinterpret_cast<u32 *>(map)[t] = 0;
  __syncthreads();
  if (t == 0) {
    ptx::tensormap_replace_global_address(ptx::space_shared, map, x);
    ptx::tensormap_replace_rank(ptx::space_shared, map, 1);
    ptx::tensormap_replace_box_dim(ptx::space_shared, map, ptx::n32_t<0>{}, 16);
    ptx::tensormap_replace_box_dim(ptx::space_shared, map, ptx::n32_t<1>{}, 4);
    ptx::tensormap_replace_global_dim(ptx::space_shared, map, ptx::n32_t<0>{}, 16);
    ptx::tensormap_replace_global_dim(ptx::space_shared, map, ptx::n32_t<1>{}, 32);
    ptx::tensormap_replace_global_stride(ptx::space_shared, map, ptx::n32_t<0>{}, u64(64));
    ptx::tensormap_replace_element_stride(ptx::space_shared, map, ptx::n32_t<0>{}, 1);
    ptx::tensormap_replace_element_stride(ptx::space_shared, map, ptx::n32_t<1>{}, 1);
    ptx::tensormap_replace_elemtype(ptx::space_shared, map, ptx::n32_t<2>{});
    ptx::tensormap_replace_interleave_layout(ptx::space_shared, map, ptx::n32_t<0>{});
    ptx::tensormap_replace_swizzle_mode(ptx::space_shared, map, ptx::n32_t<0>{});
    ptx::tensormap_replace_fill_mode(ptx::space_shared, map, ptx::n32_t<0>{});
  }
  __syncthreads();
  if (t < 32) {
    ptx::tensormap_cp_fenceproxy(ptx::sem_release, ptx::scope_gpu, global, map, ptx::n32_t<128>{});
    ptx::fence_proxy_tensormap_generic(ptx::sem_acquire, ptx::scope_gpu, global, ptx::n32_t<128>{});
  }
  __syncthreads();
  start(&full, 1);
  expect(&full, 2 * 256 + 256);
  if (t == 0) {
    const int at[2] = {0, int(8 + 4 * rank)};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile + 64 * rank, global, at, &full, u16(3));
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, rows + 32 * rank, x + 32 * rank, 128u, &full, u16(3));
  }
  await(&full, 0);
  out[256 * rank + t] = tile[t];
  out[256 * rank + 64 + t] = tile[64 + t];
  out[256 * rank + 128 + t] = rows[t];
  meet();
}

// Stores and reductions to global memory.
extern "C" __global__ void stores(const __grid_constant__ char2 unused, u32 *out, u32 *sums) {
  __shared__ alignas(16) u32 source[64];
  const u32 t = threadIdx.x;
  source[t] = 3 * t;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (t == 0) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, source, 256u);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
    ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, sums, source, 256u);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});
  }
}
