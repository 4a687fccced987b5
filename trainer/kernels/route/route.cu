// GPU kernels of the stable counting sort of slots by expert. route.hpp specifies it, and route.cpp does the
// same in plain loops.
//
// The position of slot s is the number of slots in all lower bins plus the number of earlier slots in its own
// bin. expert(s) is the bin of slot s, and total[b] the number of slots in bin b:
//
//   position(s) = Σ_{b < expert(s)} total[b]  +  #{s' < s : expert(s') = expert(s)}
//
// Three kernels compute the positions:
//
// 1. count    one block per chunk of 512 slots        counts[bin][chunk]
// 2. scan     one block per bin, over its chunks      counts ← exclusive prefix sums, total[bin]
// 3. place    one warp per chunk, 32 slots at a time  permutation, position, ends
//
// In step 3, a warp goes through its chunk in order. Among 32 slots, the rank of a lane is the number of
// lower lanes with the same expert. This makes the sort stable without atomic operations on positions.
#include <cub/block/block_scan.cuh>

#include "trainer/kernels/route/route_kernels.hpp"

namespace fomoe::trainer {
namespace {

constexpr int kScanThreads = 256;

__global__ void count_slots(const std::int64_t* expert_of_slot, std::int64_t slots, int bins, int chunks,
                            std::int32_t* counts) {
  extern __shared__ std::int32_t bin_count[];
  for (int b = threadIdx.x; b < bins; b += blockDim.x) bin_count[b] = 0;
  __syncthreads();
  const std::int64_t begin = blockIdx.x * kSlotsPerChunk;
  const std::int64_t end = min(begin + kSlotsPerChunk, slots);
  for (std::int64_t s = begin + threadIdx.x; s < end; s += blockDim.x)
    atomicAdd(&bin_count[expert_of_slot[s]], 1);
  __syncthreads();
  for (int b = threadIdx.x; b < bins; b += blockDim.x)
    counts[b * static_cast<std::int64_t>(chunks) + blockIdx.x] = bin_count[b];
}

__global__ void scan_chunks(int chunks, std::int32_t* counts, std::int32_t* total) {
  using Scan = cub::BlockScan<std::int32_t, kScanThreads>;
  __shared__ typename Scan::TempStorage storage;
  std::int32_t* row = counts + blockIdx.x * static_cast<std::int64_t>(chunks);
  std::int32_t before = 0;
  for (int first = 0; first < chunks; first += kScanThreads) {
    const int chunk = first + static_cast<int>(threadIdx.x);
    std::int32_t value = chunk < chunks ? row[chunk] : 0;
    std::int32_t prefix = 0, sum = 0;
    Scan(storage).ExclusiveSum(value, prefix, sum);
    if (chunk < chunks) row[chunk] = before + prefix;
    before += sum;
    __syncthreads();  // the next pass uses `storage` again
  }
  if (threadIdx.x == 0) total[blockIdx.x] = before;
}

__global__ void place_slots(const std::int64_t* expert_of_slot, std::int64_t slots, int bins, int chunks,
                            const std::int32_t* counts, const std::int32_t* total, std::int64_t* permutation,
                            std::int64_t* position, std::int32_t* ends) {
  // next[bin]: position of the next slot of this chunk that falls into the bin
  extern __shared__ std::int32_t next[];
  const unsigned everyone = 0xffffffffu;
  const int lane = threadIdx.x;

  // Exclusive prefix sums of the totals, 32 bins at a time.
  std::int32_t before = 0;
  for (int first = 0; first < bins; first += 32) {
    const int b = first + lane;
    const std::int32_t own = b < bins ? total[b] : 0;
    std::int32_t sum = own;
    for (int step = 1; step < 32; step *= 2) {
      const std::int32_t left = __shfl_up_sync(everyone, sum, step);
      if (lane >= step) sum += left;
    }
    if (b < bins) {
      next[b] = before + sum - own + counts[b * static_cast<std::int64_t>(chunks) + blockIdx.x];
      if (blockIdx.x == 0 && b < bins - 1) ends[b] = before + sum;
    }
    before += __shfl_sync(everyone, sum, 31);
  }
  __syncwarp();

  const std::int64_t begin = blockIdx.x * kSlotsPerChunk;
  const std::int64_t end = min(begin + kSlotsPerChunk, slots);
  for (std::int64_t first = begin; first < end; first += 32) {
    const std::int64_t slot = first + lane;
    const int bin = slot < end ? static_cast<int>(expert_of_slot[slot]) : -1;
    const unsigned same = __match_any_sync(everyone, bin);
    const int rank = __popc(same & ((1u << lane) - 1));
    std::int32_t where = 0;
    if (bin >= 0) {
      where = next[bin] + rank;
      permutation[where] = slot;
      position[slot] = where;
    }
    __syncwarp();  // all lanes have read next[bin] before one of them changes it
    if (bin >= 0 && rank == 0) next[bin] += __popc(same);
    __syncwarp();
  }
}

}  // namespace

cudaError_t launch_route(const std::int64_t* expert_of_slot, std::int64_t slots, int bins,
                         std::int64_t* permutation, std::int64_t* position, std::int32_t* ends,
                         std::int32_t* scratch, cudaStream_t stream) {
  if (slots == 0)
    return cudaMemsetAsync(ends, 0, sizeof(std::int32_t) * static_cast<std::size_t>(bins - 1), stream);
  const int chunks = static_cast<int>((slots + kSlotsPerChunk - 1) / kSlotsPerChunk);
  std::int32_t* counts = scratch;
  std::int32_t* total = scratch + static_cast<std::int64_t>(bins) * chunks;
  const std::size_t shared_bytes = sizeof(std::int32_t) * static_cast<std::size_t>(bins);
  count_slots<<<chunks, 256, shared_bytes, stream>>>(expert_of_slot, slots, bins, chunks, counts);
  scan_chunks<<<bins, kScanThreads, 0, stream>>>(chunks, counts, total);
  place_slots<<<chunks, 32, shared_bytes, stream>>>(expert_of_slot, slots, bins, chunks, counts, total,
                                                    permutation, position, ends);
  return cudaGetLastError();
}

}  // namespace fomoe::trainer
