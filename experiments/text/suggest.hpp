// "did you mean …?": the known name nearest to what was typed.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace fomoe::scenario {

/// Insertions, deletions, substitutions and swaps of neighbours that turn one word into the other.
int edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `typed`, or empty where none is near enough to be what was meant.
std::string nearest(std::string_view typed, const std::vector<std::string>& candidates);

/// What a key is called here that other programs call `typed` ("batch_size", "gpus"), if it is in `known`.
std::string usual_name(std::string_view typed, const std::vector<std::string>& known);

/// A file beside `path` whose name is near to its name, as `written` would name it; or empty.
std::string nearby_file(const std::string& path, const std::string& written);

/// "a", "b" or "c" joined with commas.
std::string joined(const std::vector<std::string>& words, std::string_view separator = ", ");

}  // namespace fomoe::scenario
