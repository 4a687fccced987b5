// Payloads of a plan in JSON, and what all readers of its parts share.
#pragma once
#include <string>
#include <vector>

#include "experiments/json/json_object.hpp"
#include "experiments/results/plan_names.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::scenario {

inline constexpr JsonKind kPlan = {"fomoe.plan/1", "plan", "a plan",
                                   "experiments/plans/hub-and-spoke.json, or a file that `fomoe simulate "
                                   "--write-plan` wrote"};
// These bounds keep the products elements · bits and count · steps within 64 bits.
inline constexpr std::int64_t kMostElements = 1'000'000'000'000'000, kMostRounds = 1'000'000'000,
                              kMostSteps = 1'000'000'000, kMostNodes = 65536;

/// The value of that name, or `fallback` if it is absent and need not be there.
template <class Value>
Value choice(const JsonObject& reader, const std::string& name, Value fallback, bool required) {
  if (!required && !reader.has(name)) return fallback;
  std::vector<std::string> known;
  for (const auto& [value, text] : names_of(fallback)) known.push_back('"' + text + '"');
  const Json& written = reader.at(name, "one of " + joined(known));
  for (const auto& [value, text] : names_of(fallback))
    if (written == text) return value;
  reader.refuse_value(name, written, "one of " + joined(known));
}

/// A payload of a transfer of a plan with so many groups. Throws FileError.
costmodel::Payload read_payload(const std::string& path, const Json& json, const std::string& where,
                                std::size_t groups);

}  // namespace fomoe::scenario
