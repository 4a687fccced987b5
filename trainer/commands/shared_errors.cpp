#include "trainer/commands/shared_errors.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>

#include "platforms/support/parse_number.hpp"

namespace fomoe::trainer {
namespace {

constexpr const char* kDescriptor = "FOMOE_ERRORS_TO";

/// A write of this length is never mixed with that of another process. Returns false if the parent did not
/// get the text.
bool tell_parent(const std::string& text) {
  const char* number = std::getenv(kDescriptor);
  const auto descriptor = number == nullptr ? std::nullopt : parse_number<int>(number);
  struct stat what {};
  if (!descriptor || text.size() >= PIPE_BUF) return false;
  if (::fstat(*descriptor, &what) != 0 || !S_ISFIFO(what.st_mode)) return false;
  const std::size_t bytes = text.size() + 1;  // with the zero at its end
  return ::write(*descriptor, text.c_str(), bytes) == static_cast<ssize_t>(bytes);
}

}  // namespace

void say_error(const std::string& text) {
  std::cerr << std::flush;  // what the process has said before comes first
  if (!tell_parent(text)) std::cerr << "fomoe-train: " + text + '\n' << std::flush;
}

void leave_shared_errors() { ::unsetenv(kDescriptor); }

SharedErrors::SharedErrors() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    throw std::runtime_error(std::string("cannot make a pipe: ") + std::strerror(errno));
  reading_ = Descriptor(ends[0]);
  writing_ = Descriptor(ends[1]);
}

void SharedErrors::join() const {
  const int kept = ::dup(writing_.get());  // without O_CLOEXEC
  ::setenv(kDescriptor, std::to_string(kept).c_str(), 1);
}

void SharedErrors::print() {
  char piece[4096];
  for (ssize_t got = 0; (got = ::read(reading_.get(), piece, sizeof piece)) > 0;)
    read_.append(piece, static_cast<std::size_t>(got));
  for (std::size_t end = 0; (end = read_.find('\0')) != std::string::npos; read_.erase(0, end + 1)) {
    const std::string text = read_.substr(0, end);
    if (said_.insert(text).second) std::cerr << "fomoe-train: " + text + '\n' << std::flush;
  }
}

}  // namespace fomoe::trainer
