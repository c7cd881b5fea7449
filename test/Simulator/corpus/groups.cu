// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Cooperative groups: a barrier of the whole grid, groups by label, tiles of several warps, copies by a tile.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/barrier>
namespace cg = cooperative_groups;

// Each phase reads what other blocks wrote in the one before.
extern "C" __global__ void grid_phases(const int *x, int *between, int *y, int n) {
  auto grid = cg::this_grid();
  for (int i = grid.thread_rank(); i < n; i += grid.size())
    between[i] = x[i] * 2;
  grid.sync();
  for (int i = grid.thread_rank(); i < n; i += grid.size())
    y[i] = between[n - 1 - i] + grid.num_blocks();
  grid.sync();
  for (int i = grid.thread_rank(); i < n; i += grid.size())
    between[i] = y[(i + 100) % n];
}

// The groups' descriptions are structs of which a part is never written, copied in 64-bit words by -G.
extern "C" __global__ void label_groups(const int *x, int *y) {
  int i = threadIdx.x;
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto same = cg::labeled_partition(warp, x[i] & 3);
  auto half = cg::binary_partition(warp, x[i] > 0);
  int sum = cg::reduce(same, x[i], cg::plus<int>()), least = cg::reduce(half, x[i], cg::less<int>());
  y[i] = sum * 3 + least + cg::exclusive_scan(same, x[i]) * 5 + same.thread_rank() + half.size();
}

// Reductions over 64 threads: their scratch is read and written again with a shuffle in between, no barrier.
extern "C" __global__ void wide_tiles(const int *x, int *y) {
  __shared__ cg::block_tile_memory<128> memory;
  auto tile = cg::tiled_partition<64>(cg::this_thread_block(memory));
  int sum = cg::reduce(tile, x[threadIdx.x], cg::plus<int>());
  y[threadIdx.x] = sum * 3 + cg::inclusive_scan(tile, x[threadIdx.x]);
}

// 128 bytes are eight pieces: the tile's other lanes repeat the last one.
extern "C" __global__ void tile_copies(const int *x, int *y, int tiles) {
  __shared__ alignas(16) int stages[2][128];
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  int warp = tile.meta_group_rank() * 32;
  auto fetch = [&](int t) {
    cg::memcpy_async(tile, stages[t & 1] + warp, x + t * 128 + warp, cuda::aligned_size_t<16>(128));
  };
  fetch(0);
  for (int t = 0; t < tiles; ++t) {
    if (t + 1 < tiles) {
      fetch(t + 1);
      cg::wait_prior<1>(tile);
    } else {
      cg::wait(tile);
    }
    y[t * 128 + threadIdx.x] = stages[t & 1][warp + 31 - tile.thread_rank()] * 2;
    tile.sync();
  }
}
