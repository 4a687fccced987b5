// fomoe-train: measures real training steps, and trains across sites. Answers on stdout, progress on stderr;
// exits 0 when all is well, 2 where the user's input is wrong, 1 for anything else.
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "experiments/scenario/scenario_reader.hpp"
#include "platforms/input_error.hpp"
#include "trainer/profile_command.hpp"
#include "trainer/run_command.hpp"

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
  throw fomoe::trainer::UsageError(
      "got \"" + command + "\"; expected a command: profile or run; for example fomoe-train profile --help");
}

}  // namespace

int main(int argc, char** argv) {
  // Huge pages for large tensors: a step allocates and frees hundreds of MB, and faulting them in 4 KiB at a
  // time takes longer than writing them. LibTorch reads this on its first allocation; whoever sets it
  // otherwise is obeyed.
  setenv("THP_MEM_ALLOC_ENABLE", "1", /*overwrite=*/0);
  try {
    return run({argv + 1, argv + argc});
  } catch (const fomoe::trainer::UsageError& error) {
    std::cerr << "fomoe-train: " << error.what() << '\n';
    return 2;
  } catch (const fomoe::scenario::FileError& error) {
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
