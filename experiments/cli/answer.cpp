#include "experiments/cli/answer.hpp"

#include <cstdio>
#include <stdexcept>

#include "platforms/support/printable.hpp"

namespace fomoe::scenario {

namespace {
std::string* kept = nullptr;
}

void write_answer(std::string_view answer) {
  const std::string text = printable_answer(answer);
  if (kept != nullptr) {
    kept->append(text);
  } else if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    throw std::runtime_error("stdout: cannot be written");
  }
}

CapturedOutput::CapturedOutput() { kept = &text_; }
CapturedOutput::~CapturedOutput() { kept = nullptr; }

}  // namespace fomoe::scenario
