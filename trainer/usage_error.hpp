#pragma once
#include <stdexcept>

namespace fomoe::trainer {

/// The user's mistake on the command line or in the environment: the program prints it and exits 2.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace fomoe::trainer
