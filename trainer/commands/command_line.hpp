// Parses the command line of one command.
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

}  // namespace fomoe::trainer
