// Builds the sections of the page as HTML.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "experiments/report/readers/result.hpp"

namespace fomoe::report {

/// A one-line summary of a run: "diloco on 4 sites takes 1 h 39 min".
std::string answer_of(const Run& run);
std::string answer_of(const Plan& plan);
std::string answer_of(const Sweep& sweep);
std::string answer_of(const Solved& solved);
std::string answer_of(const Validation& validation);

std::string run_section(const Run& run);
std::string plan_section(const Plan& plan);
std::string sweep_section(const Sweep& sweep);
std::string solved_section(const Solved& solved);
std::string validation_section(const Validation& validation);
/// A comparison of at least two runs.
std::string comparison_section(const std::vector<Run>& runs);

/// Where the numbers come from, after a sentence about them, if any, and the scenario. If `brief`, only the
/// names of assumed inputs are printed on paper.
std::string inputs_section(const Inputs& inputs, std::string_view sentence = {}, bool brief = false);
/// States factors on the rates and latencies of the platform, without which an answer cannot be compared with
/// others, but not those of the keys that vary. Empty if there are none.
std::string changed_factors(const std::vector<Provenance>& provenance,
                            const std::vector<std::string>& varied = {});
/// The method of the scenario, unless it varies, and the factors on the platform.
std::string about_scenario(const Inputs& inputs, const std::vector<std::string>& varied);

/// The key figures of the answer: pairs of name and value.
std::string figures(const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace fomoe::report
