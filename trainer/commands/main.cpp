// fomoe-train measures real training steps and trains across sites. It writes answers to stdout and progress
// to stderr. It exits with 0 on success, 2 if the user's input is wrong, 143 if SIGTERM has stopped it, and 1
// on any other error.
#include <c10/util/Exception.h>
#include <malloc.h>
#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include "experiments/scenario/scenario_reader.hpp"
#include "platforms/support/file_claims.hpp"
#include "platforms/support/input_error.hpp"
#include "trainer/commands/evaluate_command.hpp"
#include "trainer/commands/export_command.hpp"
#include "trainer/commands/grid_command.hpp"
#include "trainer/commands/profile_command.hpp"
#include "trainer/commands/run_command.hpp"
#include "trainer/commands/shared_errors.hpp"
#include "trainer/run/agreement.hpp"
#include "trainer/stopping/stopping.hpp"

namespace {

constexpr const char* kHelp = R"(fomoe-train: trains a model across sites and measures its training steps

  fomoe-train profile   time the forward pass, backward pass and optimiser of real steps, as input for `fomoe`
  fomoe-train run       train a scenario's model with processes at each site, and report times, bytes and memory
  fomoe-train grid      train every combination of several keys' values and seeds, and tabulate the losses
  fomoe-train export    put the experts of all sites together, and write the whole model for other programs
  fomoe-train evaluate  the loss of a whole model on a scenario's validation sequences
  fomoe-train <command> --help
  fomoe-train --version

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
  if (command == "--version") {
    std::cout << "fomoe-train " << fomoe::trainer::code_version() << '\n';
    return 0;
  }
  if (command == "profile") return fomoe::trainer::profile_command({arguments.begin() + 1, arguments.end()});
  if (command == "run") return fomoe::trainer::run_command({arguments.begin() + 1, arguments.end()});
  if (command == "grid") return fomoe::trainer::grid_command({arguments.begin() + 1, arguments.end()});
  if (command == "export") return fomoe::trainer::export_command({arguments.begin() + 1, arguments.end()});
  if (command == "evaluate")
    return fomoe::trainer::evaluate_command({arguments.begin() + 1, arguments.end()});
  throw fomoe::UsageError(
      "got \"" + command +
      "\"; expected the command profile, run, grid, export or evaluate; for example fomoe-train "
      "profile --help");
}

// A training step, and even more an exchange, allocates and frees hundreds of MB in large tensors. Requesting
// them from the kernel each time, which zeroes every page, took more than half of the time of an exchange.
// Therefore freed memory is kept, and large tensors lie on huge pages. Settings that the user made through
// the variables of glibc or LibTorch take precedence.
void keep_freed_memory() {
  setenv("THP_MEM_ALLOC_ENABLE", "1", /*overwrite=*/0);  // LibTorch reads it on its first allocation
  if (std::getenv("MALLOC_MMAP_MAX_") == nullptr) ::mallopt(M_MMAP_MAX, 0);
  if (std::getenv("MALLOC_TRIM_THRESHOLD_") == nullptr) ::mallopt(M_TRIM_THRESHOLD, -1);  // never
  // Only the main heap keeps freed memory; the arenas that glibc gives to other threads return it.
  if (std::getenv("MALLOC_ARENA_MAX") == nullptr) ::mallopt(M_ARENA_MAX, 1);
}

/// LibTorch's errors in one sentence, without its stack.
std::string sentence_of(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  if (text.find("allocate memory") == std::string::npos) return text;
  const std::size_t asked = text.find("tried to allocate ");
  const std::string bytes =
      asked == std::string::npos ? "" : text.substr(asked + 18, text.find(' ', asked + 18) - asked - 18);
  return "not enough memory on this machine" + (bytes.empty() ? "" : " for a tensor of " + bytes + " bytes") +
         "; a smaller model, fewer sites with --local, or a transfer in more parts (strategy.fragments) "
         "needs less";
}

// The processes of all sites of `--local` share one stderr. Each line is therefore one write, so that lines
// of several processes never run into each other. std::cerr writes each part of a line separately otherwise.
void write_whole_lines() {
  std::setvbuf(stderr, nullptr, _IOLBF, 1 << 14);
  std::cerr.unsetf(std::ios::unitbuf);
}

}  // namespace

int main(int argc, char** argv) {
  ::prctl(PR_SET_NAME, "fomoe-train");  // a process that started itself again would be called "exe" in ps
  std::signal(SIGXFSZ, SIG_IGN);        // a limit of file sizes (ulimit -f) is then an error of the write
  keep_freed_memory();
  write_whole_lines();
  try {
    const fomoe::FileClaims claims;
    const int status = run({argv + 1, argv + argc});
    if (!std::cout.flush()) throw std::runtime_error("stdout: cannot be written");
    return status;
  } catch (const fomoe::UsageError& error) {
    fomoe::trainer::say_error(error.what());
    return 2;
  } catch (const fomoe::FileError& error) {
    fomoe::trainer::say_error(error.what());
    return 2;
  } catch (const fomoe::InputError& error) {
    fomoe::trainer::say_error(error.what());
    return 2;
  } catch (const fomoe::trainer::Stopped& stopped) {
    fomoe::trainer::say_error(stopped.what());
    return fomoe::trainer::kStoppedStatus;
  } catch (const c10::Error& error) {
    fomoe::trainer::say_error(sentence_of(error));
    return 1;
  } catch (const std::bad_alloc&) {
    fomoe::trainer::say_error("not enough memory on this machine");
    return 1;
  } catch (const std::exception& error) {
    fomoe::trainer::say_error(error.what());
    return 1;
  }
}
