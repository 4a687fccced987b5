// The part of cub::BlockScan that route.cu uses, for emulated_gpu.hpp.
#pragma once
#include "tests/trainer/emulated_gpu/emulated_gpu.hpp"

namespace cub {

template <class T, int kThreads>
struct BlockScan {
  struct TempStorage {
    T of_thread[kThreads];
  };
  explicit BlockScan(TempStorage& storage) : storage_(&storage) {}
  void ExclusiveSum(T value, T& before, T& all) {
    storage_->of_thread[threadIdx.x] = value;
    __syncthreads();
    before = all = 0;
    for (int i = 0; i < kThreads; ++i) {
      if (i < static_cast<int>(threadIdx.x)) before += storage_->of_thread[i];
      all += storage_->of_thread[i];
    }
    // As on a GPU, the caller must synchronise before it uses the storage again.
  }

 private:
  TempStorage* storage_;
};

}  // namespace cub
