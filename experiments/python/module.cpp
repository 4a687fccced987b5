// The Python module's only function: it takes a command line and returns the answer. fomoe/__init__.py wraps
// it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>

#include "experiments/cli/answer.hpp"
#include "experiments/cli/command.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "platforms/support/input_error.hpp"

namespace {

struct WrongInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The function does not release the GIL, because a process can have only one SimGrid engine and one captured
// answer at a time.
std::string answer(const fomoe::commands::Arguments& arguments) {
  const fomoe::scenario::CapturedOutput kept;
  try {
    fomoe::commands::run(arguments);
  } catch (const fomoe::FileError& error) {
    throw WrongInput(error.what());
  } catch (const fomoe::InputError& error) {
    throw WrongInput(error.what());
  } catch (const fomoe::UsageError& error) {
    throw WrongInput(error.what());
  }
  return kept.text();
}

}  // namespace

NB_MODULE(_fomoe, module) {
  nanobind::exception<WrongInput>(module, "InputError", PyExc_ValueError);
  module.def("answer", &answer, nanobind::arg("arguments"));
}
