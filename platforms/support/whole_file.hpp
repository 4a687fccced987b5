// Reading a file at once.
#pragma once
#include <optional>
#include <string>

namespace fomoe {

/// The content of the file, byte by byte. Nothing if there is no such file, if it is a folder, or if it
/// cannot be read.
std::optional<std::string> whole_file(const std::string& path);

/// Whether something, or a folder, has this path. A path that the system does not accept, for example one
/// that is too long, names nothing.
bool path_exists(const std::string& path);
bool is_folder(const std::string& path);

}  // namespace fomoe
