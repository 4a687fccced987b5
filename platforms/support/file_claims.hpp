// The files that a command reads and writes. An output must not replace an input, nor another output.
#pragma once
#include <string>

namespace fomoe {

/// While such an object lives, whole_file() and note_input() remember each file that is read, and
/// claim_output() each one that will be written. Whichever comes second throws UsageError if both are the
/// same file, also through links. Objects may be nested; the innermost one counts. Without one, nothing is
/// remembered.
class FileClaims {
 public:
  FileClaims();
  ~FileClaims();
  FileClaims(const FileClaims&) = delete;
  FileClaims& operator=(const FileClaims&) = delete;

  struct State;

 private:
  State* outer_;
};

void note_input(const std::string& path);
/// `option` names the output in messages: "--output". The same option may claim its file again.
void claim_output(const std::string& option, const std::string& path);

}  // namespace fomoe
