// Reading a file at once.
#pragma once
#include <optional>
#include <string>

namespace fomoe {

/// The content of the file, byte by byte. Nothing if there is no such file, if it is a folder, or if it
/// cannot be opened. Throws FileError if reading it fails, since the end of what could be read is not the end
/// of the file; and if the file is a pipe, a device or a socket, which may be silent or endless. Pipes that
/// the process was started with are read: /dev/stdin, and /dev/fd/N for the shell's <(…). Their content is
/// kept, since it cannot be read twice.
std::optional<std::string> whole_file(const std::string& path);

/// What can be read from the descriptor until its end. Throws FileError, which calls it `name`, if reading
/// fails.
std::string read_to_end(int descriptor, const std::string& name);

/// What the path names if that is neither a regular file nor a folder: "a pipe", "a device" or "a socket".
/// Empty otherwise, and if it names nothing.
std::string special_file(const std::string& path);

/// Whether something, or a folder, has this path. A path that the system does not accept, for example one
/// that is too long, names nothing.
bool path_exists(const std::string& path);
bool is_folder(const std::string& path);

}  // namespace fomoe
