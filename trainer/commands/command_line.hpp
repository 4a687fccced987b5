// What the commands share: the parsing of a command line, and the writing of an answer.
#pragma once
#include <boost/program_options.hpp>
#include <optional>
#include <string>
#include <vector>

namespace fomoe::trainer {

/// `options` are those that --help lists, and `positional` names the one argument without a name. Returns
/// nothing after --help, which it prints with the examples. Throws UsageError.
std::optional<boost::program_options::variables_map> parse_command(
    const std::string& command, const boost::program_options::options_description& options,
    const char* positional, const std::vector<std::string>& arguments, const char* examples);

/// Writes `text` to stdout if `output` is "-", and otherwise to the file, which has either its earlier
/// content or all of the new one. Throws std::runtime_error if it cannot be written.
void write_answer(const std::string& output, const std::string& text);

/// Checks that the file of --`option` is in an existing folder and neither an input nor the file of another
/// option (file_claims.hpp), before hours of work rather than after them. Does nothing if `path` is empty or
/// "-". Throws UsageError.
void require_folder(const std::string& option, const std::string& path);
/// The same, and that a file can be made there. Throws std::runtime_error too.
void require_writable(const std::string& option, const std::string& path);

/// Throws the UsageError of an option with a wrong value.
[[noreturn]] void refuse_option(const std::string& option, const std::string& got,
                                const std::string& expected, const std::string& example);

}  // namespace fomoe::trainer
