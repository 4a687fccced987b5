#include "platforms/support/file_claims.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "platforms/support/input_error.hpp"

namespace fomoe {

namespace claims {

/// A file by its device and number, or by its whole path if there is none yet.
using Identity = std::tuple<dev_t, ino_t, std::string>;

Identity identity_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return {status.st_dev, status.st_ino, ""};
  std::error_code ignored;
  const auto whole = std::filesystem::weakly_canonical(std::filesystem::absolute(path, ignored), ignored);
  return {0, 0, whole.string()};
}

struct Output {
  std::string option, path;
  Identity identity;
};

[[noreturn]] void refuse(const Output& output, const std::string& what) {
  throw UsageError(output.option + ": got \"" + output.path + "\", which is " + what +
                   "; expected a file of its own, since it would be replaced; for example " + output.option +
                   " another-" + std::filesystem::path(output.path).filename().string());
}

}  // namespace claims

using claims::Identity;
using claims::identity_of;
using claims::Output;
using claims::refuse;

struct FileClaims::State {
  std::set<Identity> inputs;
  std::vector<Output> outputs;
};

namespace {
FileClaims::State* present = nullptr;
}

FileClaims::FileClaims() : outer_(std::exchange(present, new State)) {}

FileClaims::~FileClaims() { delete std::exchange(present, outer_); }

void note_input(const std::string& path) {
  if (present == nullptr) return;
  Identity identity = identity_of(path);
  for (const Output& output : present->outputs) {
    if (output.identity == identity) refuse(output, "also read as an input");
  }
  present->inputs.insert(std::move(identity));
}

void claim_output(const std::string& option, const std::string& path) {
  if (present == nullptr) return;
  const Output output{option, path, identity_of(path)};
  if (present->inputs.contains(output.identity)) refuse(output, "also read as an input");
  for (const Output& other : present->outputs) {
    if (other.identity != output.identity) continue;
    if (other.option == option && other.path == path) return;
    refuse(output, "also the file of " + other.option);
  }
  present->outputs.push_back(output);
}

}  // namespace fomoe
