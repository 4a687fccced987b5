// Reading a file at once.
#pragma once
#include <optional>
#include <string>

namespace fomoe {

/// The content of the file, byte by byte. Nothing if there is no such file, if it is a folder, or if it
/// cannot be read.
std::optional<std::string> whole_file(const std::string& path);

}  // namespace fomoe
