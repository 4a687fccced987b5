// Writes answers to stdout, or captures them as text for a caller in the same process.
#pragma once
#include <string>
#include <string_view>

namespace fomoe::scenario {

/// Control characters, which names may contain, are written as in "\u001b". Throws std::runtime_error if
/// stdout cannot be written.
void write_answer(std::string_view answer);

/// Captures answers instead of printing them while the object lives. Only one such object may exist at a
/// time.
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
