// Where answers go: stdout, or into a text that somebody in the same program wants.
#pragma once
#include <string>
#include <string_view>

namespace fomoe::scenario {

/// Throws std::runtime_error where stdout takes no more.
void write_answer(std::string_view text);

/// While it lives, answers are kept instead of printed. One at a time.
class CapturedOutput {
 public:
  CapturedOutput();
  ~CapturedOutput();
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace fomoe::scenario
