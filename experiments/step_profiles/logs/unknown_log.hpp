// What to say of a log that no reader understands: the lines that look like steps, and how to import them.
#pragma once
#include <string>

namespace fomoe::step_profiles {

/// The first lines that look like steps, with their numbers, and the commands that make a CSV file of their
/// times and import that. `rest` is what follows the format in the command for the log: "--model small …".
/// Empty if no line looks like a step.
std::string how_to_import(const std::string& path, const std::string& text, const std::string& rest);

}  // namespace fomoe::step_profiles
