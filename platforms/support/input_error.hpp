// Exceptions for wrong input by the user. The programs print what() and exit with status 2.
#pragma once
#include <stdexcept>
#include <string>
#include <utility>

#include "platforms/support/printable.hpp"

namespace fomoe {

/// A wrong value in a scenario. The message names the key, the value found, the values expected, and an
/// example that works. The reader of the scenario adds the file and the line.
class InputError : public std::runtime_error {
 public:
  InputError(std::string key, const std::string& got, const std::string& expected, const std::string& example)
      : std::runtime_error(
            printable(key + ": got " + got + "; expected " + expected + "; for example " + example)),
        key_(std::move(key)) {}

  InputError(std::string key, const std::string& message)
      : std::runtime_error(printable(message)), key_(std::move(key)) {}

  /// Dotted key of the scenario that the mistake is about, for instance "strategy.expert_overlap".
  [[nodiscard]] const std::string& key() const { return key_; }

 private:
  std::string key_;
};

/// A mistake in a file or in an override: "file:line: key: got …; expected …; for example …". If an unknown
/// name is close to a known one, the message ends with "; did you mean …?".
class FileError : public std::runtime_error {
 public:
  explicit FileError(const std::string& message) : std::runtime_error(printable(message)) {}
};

/// A mistake on the command line or in the environment.
class UsageError : public std::runtime_error {
 public:
  explicit UsageError(const std::string& message) : std::runtime_error(printable(message)) {}
};

/// The answer is complete and was written, and nothing in it meets the limits that were asked for. The
/// programs print what() and exit with status 3.
class LimitsNotMet : public std::runtime_error {
 public:
  explicit LimitsNotMet(const std::string& message) : std::runtime_error(printable(message)) {}
};

}  // namespace fomoe
