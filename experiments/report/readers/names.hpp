// Short names of settings and cases, for charts and tables.
#pragma once
#include <string>

namespace fomoe::report {

/// A key as people call it: "K", "O_e", "rate_factor".
std::string short_key(const std::string& key);

/// A setting as people call it: "diloco", "K=64", "O_e=2", "rate_factor=0.1".
std::string short_setting(const std::string& key, const std::string& value);

/// The name of a case of `fomoe compare`: "diloco K=64" for "strategy.method=diloco strategy.local_steps=64".
/// A name in which some word is not an assignment stays as it is. The unchanged scenario is "unchanged".
std::string short_case(const std::string& name);

}  // namespace fomoe::report
