#include <cstdio>
#include <cstdlib>

#define DOCTEST_CONFIG_IMPLEMENT
#include "tests/trainer/support.hpp"
#include "trainer/device/device_info.hpp"

int main(int argc, char** argv) {
  if (!fomoe::trainer::cuda_available()) {
    std::puts("no GPU: skipped");
    return 77;  // SKIP_RETURN_CODE of this test
  }
  // Before the first matrix product: one test wants deterministic ones.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  // As in fomoe-train, before the first tensor of the process; no test case can be sure to run first.
  fomoe::trainer::reset_peak_memory(true);
  return doctest::Context(argc, argv).run();
}
