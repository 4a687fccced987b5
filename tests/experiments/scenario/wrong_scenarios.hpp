// Helpers for tests of mistakes in a scenario: each case changes a valid scenario and has the expected
// message. The cases are in wrong_*_test.cpp.
#pragma once
#include <doctest/doctest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "experiments/scenario/keys/keys.hpp"
#include "tests/experiments/run_fomoe.hpp"

namespace fomoe::tests {

// Line numbers in the expectations below count from the first line of this text.
inline const std::string kGood = R"(seed = 1
[model]
preset = "small"
[workload]
tokens = 1e6
global_batch_sequences = 16
[strategy]
method = "fomoe"
local_steps = 4
expert_overlap = 2
[compute]
step_time = "420ms"
[platform]
sites = 4
bandwidth = "1Gbps"
latency = "25ms"
)";

struct Wrong {
  std::string from, to;  // the change to the valid file; an empty `from` appends `to`
  std::string options;   // added to the command line
  std::string message;   // the part after the file's name, or the whole line if it starts with --set
};

inline const std::string kRate =
    "a data rate above zero in quotes, with a unit (bits as bps kbps Mbps Gbps Tbps, bytes as Bps kBps MBps "
    "GBps or "
    "KiBps MiBps GiBps); for example bandwidth = \"1Gbps\"";
inline const std::string kLatency =
    "a time of zero or more in quotes, with a unit (ns us ms s min h d); for example latency = \"25ms\"";
inline const std::string kStepTime =
    "a time above zero in quotes, with a unit (ns us ms s min h d); for example step_time = \"420ms\"";
inline const std::string kSize =
    "a size above zero in quotes, with a unit (B kB MB GB TB or KiB MiB GiB TiB); for example ";
// The list of keys comes from the program, so that a new key needs no change here. The keys of the table
// [strategy.compression] count as one key of [strategy].
inline const std::string kStrategyKeys = [] {
  std::string text;
  for (const fomoe::scenario::Key& key : fomoe::scenario::scenario_keys()) {
    const bool nested = key.table == "strategy.compression";
    if (key.table != "strategy" && !nested) continue;
    const std::string name(nested ? std::string_view("compression") : key.name);
    if (text.ends_with(", " + name)) continue;
    text += (text.empty() ? "one of " : ", ") + name;
  }
  return text;
}();
// The list of methods comes from the program, so that a new method needs no change here.
inline const std::string kMethods = [] {
  std::string text = "one of ";
  for (const fomoe::costmodel::Method& method : fomoe::costmodel::methods())
    text += (text == "one of " ? "\"" : ", \"") + std::string(method.name) + '"';
  return text;
}();
inline const std::string kMoney =
    "a price of zero or more in quotes, with a currency of three capital letters; for example ";
inline const std::string kTables =
    "one of [model] [workload] [strategy] [compute] [[site]] [[path]] [platform] [network_model] "
    "[calibration] "
    "[traffic] "
    "[prices] [energy] "
    "[quality] [failures] [trainer]; for example [model]";
inline const std::string kOneCompute =
    "exactly one of profile, step_time, mfu and kernel_efficiency; the last two with peak_flops or "
    "accelerator";

inline std::string changed(const Wrong& wrong) {
  std::string text = kGood;
  if (wrong.from.empty()) return text + wrong.to;
  const std::size_t at = text.find(wrong.from);
  REQUIRE_MESSAGE(at != std::string::npos, wrong.from);
  return text.replace(at, wrong.from.size(), wrong.to);
}

/// Checks exit status 2, a message of the form "file:line: key: got; expected; for example", and that no file
/// is left.
inline void check_refused(const std::vector<Wrong>& cases) {
  for (const Wrong& wrong : cases) {
    CAPTURE(wrong.to);
    CAPTURE(wrong.options);
    const Folder folder;
    write_all(folder / "s.toml", changed(wrong));
    const Ran ran = run_in(folder.path(),
                           "fomoe simulate s.toml --output answer.json --trace trace.json " + wrong.options);
    const bool by_option = wrong.message.starts_with("--set");
    CHECK(ran.exit_status == 2);
    CHECK(ran.err == (by_option ? "" : "s.toml") + wrong.message + "\n");
    CHECK(ran.out.empty());
    const std::regex shape(R"((s\.toml:\d+|--set \S+): \S+: got .+; expected .+; for example .+\n)");
    CHECK(std::regex_match(ran.err, shape));
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      files += entry.exists() ? 1 : 0;
    CHECK(files == 1);  // only the scenario
  }
}

}  // namespace fomoe::tests
