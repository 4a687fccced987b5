#include "tests/trainer/emulated_gpu/emulated_gpu.hpp"

#include <ucontext.h>

#include <array>
#include <csetjmp>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "tests/trainer/emulated_gpu/check.hpp"

namespace emulated_gpu {

Index thread_index, block_index, block_size;

namespace {

constexpr std::size_t kStackBytes = 128 * 1024;

enum class Waits { no, for_warp, for_block, ended };

/// One emulated thread with its own stack. setcontext starts it; later switches use _longjmp, which unlike
/// swapcontext makes no system call. A fiber runs one thread after another, of this block and of later ones.
struct Fiber {
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(kStackBytes);
  bool begun = false;
  std::jmp_buf here{};
  Waits waits = Waits::no;
};

std::jmp_buf scheduler;
std::deque<Fiber> fibers;
const std::function<void()>* work = nullptr;
std::array<std::array<char, 32 * 16>, 32> lane_values;  // by warp: 16 bytes for each lane
alignas(16) std::array<char, kMostShared> shared;
std::map<const void*, std::size_t> requested_shared;
cudaError_t error = cudaSuccess;

void switch_to_scheduler(Waits why) {
  Fiber& self = fibers[thread_index.x];
  self.waits = why;
  if (_setjmp(self.here) == 0) _longjmp(scheduler, 1);
}

void run_fiber() {
  while (true) {
    (*work)();
    switch_to_scheduler(Waits::ended);
  }
}

void resume(unsigned thread) {
  thread_index.x = thread;
  Fiber& fiber = fibers[thread];
  if (_setjmp(scheduler) != 0) return;  // the fiber has switched back to the scheduler
  if (fiber.begun) _longjmp(fiber.here, 1);
  fiber.begun = true;
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = fiber.stack.get();
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, run_fiber, 0);
  setcontext(&context);
}

/// Releases the fibers first … end − 1 if all of them wait at this barrier. Returns whether they were
/// released.
bool release(std::size_t first, std::size_t end, Waits from) {
  bool any = false;
  for (std::size_t i = first; i < end; ++i) {
    // The barrier of a block does not wait for threads that have ended. The barrier of a warp waits for all
    // its lanes.
    if (fibers[i].waits == Waits::ended && from == Waits::for_block) continue;
    if (fibers[i].waits != from) return false;
    any = true;
  }
  for (std::size_t i = first; any && i < end; ++i) {
    if (fibers[i].waits == from) fibers[i].waits = Waits::no;
  }
  return any;
}

void run_block(std::size_t threads) {
  for (std::size_t i = 0; i < threads; ++i) fibers[i].waits = Waits::no;
  while (true) {
    for (std::size_t i = 0; i < threads; ++i) {
      if (fibers[i].waits == Waits::no) resume(static_cast<unsigned>(i));
    }
    bool progress = release(0, threads, Waits::for_block);
    for (std::size_t warp = 0; warp < threads; warp += 32)
      progress = release(warp, std::min(warp + 32, threads), Waits::for_warp) || progress;
    if (progress) continue;
    for (std::size_t i = 0; i < threads; ++i) {
      if (fibers[i].waits == Waits::ended) continue;
      fibers.clear();  // otherwise they would continue at the barrier in the next launch
      throw std::logic_error("emulated GPU: threads of block " + std::to_string(block_index.x) +
                             " wait for each other at different places");
    }
    return;
  }
}

}  // namespace

void* shared_memory() { return shared.data(); }
void* warp_places() { return lane_values[thread_index.x / 32].data(); }
void wait_for_block() { switch_to_scheduler(Waits::for_block); }
void wait_for_warp() { switch_to_scheduler(Waits::for_warp); }

void must_be_aligned(const void* address, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0) error = cudaErrorMisalignedAddress;
}

cudaError_t last_error() { return std::exchange(error, cudaSuccess); }

cudaError_t ask_for_shared(const void* kernel, int bytes) {
  if (static_cast<std::size_t>(bytes) + kOwnShared > kMostShared) return cudaErrorInvalidValue;
  requested_shared[kernel] = static_cast<std::size_t>(bytes);
  return cudaSuccess;
}

void launch(const void* kernel, std::int64_t blocks, std::int64_t threads, std::size_t shared_bytes,
            const std::function<void()>& body) {
  const auto requested = requested_shared.find(kernel);
  const std::size_t allowed =
      requested == requested_shared.end() ? kSharedUnasked - kOwnShared : requested->second;
  if (blocks < 1 || blocks > 0x7fffffff || threads < 1 || threads > 1024) {
    error = cudaErrorInvalidConfiguration;
    return;
  }
  if (shared_bytes > allowed) {
    error = cudaErrorInvalidValue;
    return;
  }
  while (fibers.size() < static_cast<std::size_t>(threads)) fibers.emplace_back();
  work = &body;
  block_size.x = static_cast<unsigned>(threads);
  for (std::int64_t block = 0; block < blocks; ++block) {
    block_index.x = static_cast<unsigned>(block);
    shared.fill(static_cast<char>(0xff));  // NaN: kernels must not rely on earlier contents
    run_block(static_cast<std::size_t>(threads));
  }
}

}  // namespace emulated_gpu
