// What a figure assumes: values of the paper or of this project, unless the user sets others.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "experiments/results/json_values.hpp"

namespace fomoe::figures {

class Assumptions {
 public:
  /// `settings` has the form "mfu=0.5". Throws UsageError for any other form.
  explicit Assumptions(const std::vector<std::string>& settings);

  // Each of these functions returns the value that was set, or the usual one, and records it. They throw
  // UsageError if the value has another type or is not between the bounds.
  double number(const std::string& name, double usual, double least, double most);
  std::int64_t count(const std::string& name, std::int64_t usual, std::int64_t most = 1'000'000'000'000'000);
  bool flag(const std::string& name, bool usual);
  std::string choice(const std::string& name, const std::string& usual,
                     const std::vector<std::string>& values);
  std::string text(const std::string& name, const std::string& usual);
  std::vector<double> numbers(const std::string& name, const std::vector<double>& usual, double least,
                              double most);
  /// An assumption in words, which cannot be changed.
  void state(const std::string& name, scenario::Json value) { stated_[name] = std::move(value); }

  /// All assumptions of the figure.
  [[nodiscard]] const scenario::Json& stated() const { return stated_; }
  /// The settings whose names the figure has not used.
  [[nodiscard]] std::vector<std::string> unused() const;
  /// The names that --set can change.
  [[nodiscard]] std::vector<std::string> names() const { return {names_.begin(), names_.end()}; }

 private:
  [[noreturn]] void refuse(const std::string& name, const std::string& expected,
                           const std::string& example) const;
  double parsed(const std::string& name, const std::string& text, double usual, double least,
                double most) const;

  std::map<std::string, std::string> settings_;
  std::set<std::string> names_;
  scenario::Json stated_ = scenario::Json::object();
};

}  // namespace fomoe::figures
