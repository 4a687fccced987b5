// Helpers for tests that run the real program, as a user does, in a temporary folder.
#pragma once
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace fomoe::tests {

struct Ran {
  int exit_status = -1;
  std::string out, err;
};

inline std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

inline void write_all(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// A temporary folder. The destructor removes it with its contents.
class Folder {
 public:
  Folder() : path_((std::filesystem::temp_directory_path() / "fomoe-test-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary folder");
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + '/' + name; }

 private:
  std::string path_;
};

/// Runs `command` in the shell, with `fomoe` on its PATH and `folder` as the working directory.
inline Ran run_in(const std::string& folder, const std::string& command) {
  const Folder capture;
  const std::string line = "cd '" + folder + "' && PATH='" FOMOE_BINARY_DIR "':\"$PATH\" " + command + " >'" +
                           (capture / "out") + "' 2>'" + (capture / "err") + "'";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_all(capture / "out"), read_all(capture / "err")};
}

inline std::string source_dir() { return FOMOE_SOURCE_DIR; }

inline Ran run(const std::string& command) { return run_in(source_dir(), command); }

/// A scenario with two sites and ideal hosts.
inline const std::string kTwoSites = source_dir() + "/tests/ideal/two-sites.toml";

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace fomoe::tests
