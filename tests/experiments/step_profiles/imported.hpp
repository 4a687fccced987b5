// Imports logs that a test writes, with the real program.
#pragma once
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "experiments/files/step_profile_io.hpp"
#include "tests/experiments/run_fomoe.hpp"

namespace fomoe::tests {

/// What no log states.
inline const std::string kUnstated = " --dtype bf16 --device \"NVIDIA H100 80GB HBM3\" ";

inline Ran import_text(const Folder& folder, const std::string& text, const std::string& format,
                       const std::string& options) {
  write_all(folder / "a.log", text);
  return run_in(folder.path(),
                "fomoe profile import a.log --from " + format + " --output p.json" + kUnstated + options);
}

/// The profile of a log of the model small, or of another that the options name.
inline costmodel::StepProfile profile_of_log(const std::string& text, const std::string& format,
                                             const std::string& options) {
  const Folder folder;
  const bool model =
      options.find("--model ") != std::string::npos || options.find("--scenario ") != std::string::npos;
  const Ran ran = import_text(folder, text, format, options + (model ? "" : " --model small"));
  REQUIRE_MESSAGE(ran.exit_status == 0, ran.err);
  return scenario::read_step_profile(folder / "p.json");
}

/// The message that refuses a log.
inline std::string refusal(const std::string& text, const std::string& format, const std::string& options) {
  const Folder folder;
  const bool model =
      options.find("--model ") != std::string::npos || options.find("--scenario ") != std::string::npos;
  const Ran ran = import_text(folder, text, format, options + (model ? "" : " --model small"));
  CHECK(ran.exit_status == 2);
  CHECK_FALSE(std::filesystem::exists(folder / "p.json"));
  return ran.err;
}

/// What a message proposes: the text after "for example".
inline std::string proposal(const std::string& message) {
  const std::string label = "for example ";
  const std::size_t at = message.find(label);
  REQUIRE_MESSAGE(at != std::string::npos, message);
  std::string text = message.substr(at + label.size());
  for (const char* end : {"; did you", "\n"}) text = text.substr(0, text.find(end));
  return text;
}

inline double seconds_of(const costmodel::StepSample& sample) {
  return sample.forward_s + sample.backward_s + sample.optimizer_s;
}

/// The median step of the only point.
inline double step_of(const costmodel::StepProfile& profile) {
  REQUIRE(profile.points.size() == 1);
  return seconds_of(costmodel::median_step(profile.points[0]));
}

}  // namespace fomoe::tests
