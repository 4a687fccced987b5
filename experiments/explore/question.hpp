// What the page asks about: the scenario of the command line, with the settings of the page on top.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/inputs/scenario.hpp"
#include "experiments/results/json_values.hpp"

namespace fomoe::explore {

using scenario::Json;

/// The page shows answers for K = 1, 2, 4 and so on, up to this.
inline constexpr std::int64_t kLargestLocalSteps = 1024;

/// The scenario that the command line names, and its --set, --unset and --seed as overrides of the reader.
struct Question {
  std::string path;
  std::vector<std::string> overrides;
};

/// A request that the page would never send.
class BadRequest : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The overrides of the command line, followed by those of the page. `settings` maps keys to the values as a
/// user would write them after --set; null stands for --unset. Throws BadRequest for other JSON.
std::vector<std::string> overrides_of(const Question& question, const Json& settings);

/// Reads the scenario with these overrides, as all commands do.
costmodel::Scenario read(const Question& question, const std::vector<std::string>& overrides);

/// The same with another number of local steps, which may change the defaults of other keys. Nothing if the
/// reader refuses it, for example because fragments do not fit.
std::optional<costmodel::Scenario> with_local_steps(const Question& question,
                                                    std::vector<std::string> overrides,
                                                    std::int64_t local_steps);

/// The options --set and --unset that give these overrides, quoted for a shell; empty or with a space in
/// front.
std::string options_of(const std::vector<std::string>& overrides);
/// The command line of `fomoe simulate` for these overrides.
std::string command_of(const Question& question, const std::vector<std::string>& overrides);

/// The scenario file with the overrides in it. Paths in it stay relative to the folder of the original.
std::string toml_of(const Question& question, const std::vector<std::string>& overrides);

/// The mistakes in a message of the reader, one object {key, text} for each line. The key is empty if the
/// line names none.
Json mistakes_of(const std::string& message, const std::vector<std::string>& overrides);

}  // namespace fomoe::explore
