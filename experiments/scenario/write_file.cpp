#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "experiments/scenario/json_io.hpp"

namespace fomoe::scenario {
namespace {

/// The temporary file: closed and removed unless it became the target.
class Temporary {
 public:
  explicit Temporary(const std::string& target) : name_(target + ".XXXXXX.tmp") {
    descriptor_ = mkstemps(name_.data(), 4);
    if (descriptor_ < 0) fail(target);
    // mkstemps gives 0600; a result is an ordinary file.
    const mode_t mask = umask(0);
    umask(mask);
    (void)fchmod(descriptor_, 0666 & ~mask);
  }
  ~Temporary() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!name_.empty()) unlink(name_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  void write_all(const std::string& text, const std::string& target) {
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t written = write(descriptor_, text.data() + done, text.size() - done);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(target);
      done += static_cast<std::size_t>(written);
    }
    if (fsync(descriptor_) != 0) fail(target);
  }
  void become(const std::string& target) {
    if (rename(name_.c_str(), target.c_str()) != 0) fail(target);
    name_.clear();
  }

 private:
  [[noreturn]] static void fail(const std::string& target) {
    throw std::runtime_error(target + ": cannot be written: " + std::strerror(errno));
  }

  std::string name_;
  int descriptor_ = -1;
};

}  // namespace

void write_file(const std::string& path, const std::string& text) {
  namespace fs = std::filesystem;
  // Through a link, so that the link stays one; a rename over a device or a pipe would replace it.
  const std::string target = fs::is_symlink(path) ? fs::weakly_canonical(path).string() : path;
  if (fs::exists(target) && !fs::is_regular_file(target)) {
    throw std::runtime_error(path + ": cannot be written: it exists and is no regular file");
  }
  Temporary temporary(target);
  temporary.write_all(text, target);
  temporary.become(target);
}

}  // namespace fomoe::scenario
