// A mistake of the user's: which key, what was found, what was expected and an example that works.
// The reader adds file and line; the program prints it and exits 2.
#pragma once
#include <stdexcept>
#include <string>
#include <utility>

namespace fomoe {

class InputError : public std::runtime_error {
 public:
  InputError(std::string key, std::string got, std::string expected, std::string example)
      : std::runtime_error(key + ": got " + got + "; expected " + expected + "; for example " + example),
        key_(std::move(key)) {}

  /// Dotted key of the scenario that the mistake is about, for instance "strategy.expert_overlap".
  [[nodiscard]] const std::string& key() const { return key_; }

 private:
  std::string key_;
};

}  // namespace fomoe
