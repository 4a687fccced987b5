#include "platforms/support/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace fomoe {

namespace fs = std::filesystem;

namespace {

bool is_link(const std::string& path) {
  std::error_code ignored;
  return fs::is_symlink(path, ignored);
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path)
    // Symbolic links are resolved, since the rename would replace the link itself. For the same reason the
    // check below refuses devices and pipes.
    : target_(is_link(path) ? fs::weakly_canonical(path).string() : path) {
  struct stat replaced {};
  const bool replaces = ::stat(target_.c_str(), &replaced) == 0;
  if (replaces && !S_ISREG(replaced.st_mode))
    throw std::runtime_error(path + ": cannot be written: it exists and is not a regular file");
  const fs::path folder = fs::path(target_).parent_path();
  file_ = Descriptor(::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
  if (file_.get() >= 0) {
    if (replaces) (void)fchmod(file_.get(), replaced.st_mode & 0777);
    return;
  }
  temporary_ = target_ + ".XXXXXX.tmp";
  file_ = Descriptor(mkstemps(temporary_.data(), 4));
  if (file_.get() < 0) {
    temporary_.clear();
    fail();
  }
  // mkstemps() creates the file with mode 0600; a result file gets the mode of the file that it replaces, or
  // the usual one.
  const mode_t mask = umask(0);
  umask(mask);
  (void)fchmod(file_.get(), replaces ? replaced.st_mode & 0777 : 0666 & ~mask);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file_.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail();
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  if (fsync(file_.get()) != 0) fail();
  if (temporary_.empty()) name_it();
  if (rename(temporary_.c_str(), target_.c_str()) != 0) fail();
  temporary_.clear();
}

// A nameless file can take a new name only. The rename then replaces the target.
void AtomicFile::name_it() {
  const std::string file = "/proc/self/fd/" + std::to_string(file_.get());
  for (int attempt = 0;; ++attempt) {
    const std::string name =
        target_ + '.' + std::to_string(getpid()) + '-' + std::to_string(attempt) + ".tmp";
    if (linkat(AT_FDCWD, file.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = name;
      return;
    }
    if (errno != EEXIST) fail();
  }
}

void AtomicFile::fail() const {
  throw std::runtime_error(target_ + ": cannot be written: " + std::strerror(errno));
}

void write_file(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace fomoe
