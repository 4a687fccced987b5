// The program `fomoe`, which plans cross-site mixture-of-experts training. Answers go to stdout and messages
// to stderr. The exit status is 0 for success, 2 for wrong input, 3 for an answer in which nothing meets the
// limits (--within, --target), and 1 for any other failure.
#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "experiments/cli/command.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "platforms/support/input_error.hpp"

namespace {

constexpr int kWrongInput = 2, kFailure = 1, kLimitsNotMet = 3;

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit of file sizes (ulimit -f) is then an error of the write
  try {
    fomoe::commands::run({argv + 1, argv + argc});
    // Without this check, a full disk or a closed pipe would look like a success.
    if (std::fflush(stdout) != 0) throw std::runtime_error("stdout: cannot be written");
    return 0;
  } catch (const fomoe::FileError& error) {
    fomoe::commands::message(error.what());  // the message begins with file:line, which editors recognise
    return kWrongInput;
  } catch (const fomoe::InputError& error) {
    fomoe::commands::message(std::string("fomoe: ") + error.what());
    return kWrongInput;
  } catch (const fomoe::UsageError& error) {
    fomoe::commands::message(std::string("fomoe: ") + error.what());
    return kWrongInput;
  } catch (const fomoe::LimitsNotMet& error) {
    if (std::fflush(stdout) != 0) {
      fomoe::commands::message("fomoe: stdout: cannot be written");
      return kFailure;
    }
    fomoe::commands::message(std::string("fomoe: ") + error.what());
    return kLimitsNotMet;
  } catch (const std::exception& error) {
    fomoe::commands::message(std::string("fomoe: ") + error.what());
    return kFailure;
  }
}
