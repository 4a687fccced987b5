// Finds the known name that is closest to a mistyped one, for "did you mean …?".
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace fomoe::scenario {

/// The number of insertions, deletions, substitutions and swaps of neighbouring letters that turn one word
/// into the other.
int edit_distance(std::string_view a, std::string_view b);

/// The candidate closest to `typed`; empty if none is close enough.
std::string nearest(std::string_view typed, const std::vector<std::string>& candidates);

/// The key that other programs call `typed` ("batch_size", "gpus"); empty unless it is in `known`.
std::string usual_name(std::string_view typed, const std::vector<std::string>& known);

/// A file in the folder of `path` with a similar name, in the form in which `written` names it; empty if
/// there is none.
std::string nearby_file(const std::string& path, const std::string& written);

/// "a", "b" or "c" joined with commas.
std::string joined(const std::vector<std::string>& words, std::string_view separator = ", ");

}  // namespace fomoe::scenario
