// fomoe-train: measures real training steps, and trains across sites. Answers on stdout, progress on stderr;
// exits 0 when all is well, 2 where the user's input is wrong, 1 for anything else.
#include <malloc.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "experiments/scenario/scenario_reader.hpp"
#include "platforms/support/input_error.hpp"
#include "trainer/commands/profile_command.hpp"
#include "trainer/commands/run_command.hpp"

namespace {

constexpr const char* kHelp = R"(fomoe-train: the real model, trained and measured

  fomoe-train profile   time forward, backward and optimiser of real steps, for `fomoe` to plan with
  fomoe-train run       train what a scenario says, across real processes, and report what it took
  fomoe-train <command> --help

Examples
  fomoe-train profile --help
  fomoe-train profile --model small --sequence-length 128 --output -
  fomoe-train run experiments/scenarios/tiny-training.toml --local --output -
)";

int run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    std::cerr << kHelp;
    return 2;
  }
  const std::string& command = arguments.front();
  if (command == "--help" || command == "-h" || command == "help") {
    std::cout << kHelp;
    return 0;
  }
  if (command == "profile") return fomoe::trainer::profile_command({arguments.begin() + 1, arguments.end()});
  if (command == "run") return fomoe::trainer::run_command({arguments.begin() + 1, arguments.end()});
  throw fomoe::UsageError("got \"" + command +
                          "\"; expected a command: profile or run; for example fomoe-train profile --help");
}

// A step, and more so an exchange, allocates and frees hundreds of MB of large tensors. Asking the kernel for
// them each time, who clears every page, took more than half of the time of an exchange; so freed memory is
// kept for the next, and large tensors lie on huge pages. Whoever set glibc's or LibTorch's variables
// otherwise is obeyed.
void keep_freed_memory() {
  setenv("THP_MEM_ALLOC_ENABLE", "1", /*overwrite=*/0);  // read on LibTorch's first allocation
  if (std::getenv("MALLOC_MMAP_MAX_") == nullptr) ::mallopt(M_MMAP_MAX, 0);
  if (std::getenv("MALLOC_TRIM_THRESHOLD_") == nullptr) ::mallopt(M_TRIM_THRESHOLD, -1);  // never
  // The heaps that glibc gives to other threads do give memory back.
  if (std::getenv("MALLOC_ARENA_MAX") == nullptr) ::mallopt(M_ARENA_MAX, 1);
}

}  // namespace

int main(int argc, char** argv) {
  keep_freed_memory();
  try {
    return run({argv + 1, argv + argc});
  } catch (const fomoe::UsageError& error) {
    std::cerr << "fomoe-train: " << error.what() << '\n';
    return 2;
  } catch (const fomoe::FileError& error) {
    std::cerr << "fomoe-train: " << error.what() << '\n';
    return 2;
  } catch (const fomoe::InputError& error) {
    std::cerr << "fomoe-train: " << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "fomoe-train: " << error.what() << '\n';
    return 1;
  }
}
