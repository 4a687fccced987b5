// fomoe: plans cross-site mixture-of-experts training. Answers on stdout, messages on stderr;
// exit status 0, 2 where the input is wrong, 1 for anything else.
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "experiments/cli/command.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "platforms/support/input_error.hpp"

namespace {

constexpr int kWrongInput = 2, kFailure = 1;

}  // namespace

int main(int argc, char** argv) {
  try {
    fomoe::commands::run({argv + 1, argv + argc});
    // A full disk or a closed pipe must not look like an answer.
    if (std::fflush(stdout) != 0) throw std::runtime_error("stdout: cannot be written");
    return 0;
  } catch (const fomoe::FileError& error) {
    fomoe::commands::message(error.what());  // begins with file:line, where editors look for it
    return kWrongInput;
  } catch (const fomoe::InputError& error) {
    fomoe::commands::message(std::string("fomoe: ") + error.what());
    return kWrongInput;
  } catch (const fomoe::UsageError& error) {
    fomoe::commands::message(std::string("fomoe: ") + error.what());
    return kWrongInput;
  } catch (const std::exception& error) {
    fomoe::commands::message(std::string("fomoe: ") + error.what());
    return kFailure;
  }
}
