#include "platforms/support/whole_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "platforms/support/descriptor.hpp"
#include "platforms/support/file_claims.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe {

namespace {

constexpr std::size_t kMostOfStream = std::size_t{1} << 30;  // bytes; a stream may be endless

// Devices are not among them but for terminals: /dev/stdin may be /dev/zero.
bool given_stream(const std::string& path, const struct stat& status) {
  if (path != "/dev/stdin" && !path.starts_with("/dev/fd/") && !path.starts_with("/proc/self/fd/"))
    return false;
  return S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode);
}

std::string kind_of(const struct stat& status) {
  if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) return "";
  if (S_ISFIFO(status.st_mode)) return "a pipe";
  return S_ISSOCK(status.st_mode) ? "a socket" : "a device";
}

[[noreturn]] void refuse(const std::string& path, const std::string& got, const std::string& expected,
                         const std::string& example) {
  throw FileError(path + ":1: file: got " + got + "; expected " + expected + "; for example " + example);
}

std::string stream(int descriptor, const std::string& path) {
  static std::map<std::string, std::string> known;
  const auto [found, is_new] = known.try_emplace(path);
  if (!is_new) return found->second;
  // It was opened without waiting for it; its end is waited for.
  (void)::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  return found->second = read_to_end(descriptor, path);
}

}  // namespace

std::string read_to_end(int descriptor, const std::string& name) {
  struct stat status {};
  const bool regular = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  constexpr std::size_t kAtOnce = 1 << 16;
  std::string text;
  if (regular && status.st_size > 0) text.reserve(static_cast<std::size_t>(status.st_size) + kAtOnce);
  for (;;) {
    const std::size_t before = text.size();
    text.resize(before + kAtOnce);
    const ssize_t got = ::read(descriptor, text.data() + before, kAtOnce);
    const int error = errno;
    text.resize(before + static_cast<std::size_t>(got > 0 ? got : 0));
    if (got == 0) return text;
    if (got < 0 && error == EINTR) continue;
    if (got < 0) {
      refuse(
          name,
          "an error after " + std::to_string(text.size()) + " bytes were read (" + std::strerror(error) + ")",
          "a file that can be read to its end", "a copy of it on another disk");
    }
    if (!regular && text.size() > kMostOfStream)
      refuse(name, "more than 1 GiB", "a file, or a stream of at most 1 GiB", "a file with a part of it");
  }
}

std::optional<std::string> whole_file(const std::string& path) {
  // Without O_NONBLOCK, a pipe that nobody writes to would be waited for.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) {
    const std::string special = special_file(path);  // sockets cannot be opened
    if (special == "a socket") refuse(path, special, "a regular file", "a copy of its content in a file");
    return std::nullopt;
  }
  if (S_ISDIR(status.st_mode)) return std::nullopt;
  if (given_stream(path, status)) return stream(file.get(), path);
  if (const std::string special = kind_of(status); !special.empty())
    refuse(path, special, "a regular file", "a copy of its content in a file");
  note_input(path);
  return read_to_end(file.get(), path);
}

std::string special_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? kind_of(status) : "";
}

bool path_exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

}  // namespace fomoe
