#include "trainer/commands/command_line.hpp"

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <stdexcept>

#include "platforms/support/atomic_file.hpp"
#include "platforms/support/file_claims.hpp"
#include "platforms/support/input_error.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::trainer {

namespace po = boost::program_options;

std::optional<po::variables_map> parse_command(const std::string& command,
                                               const po::options_description& options, const char* positional,
                                               const std::vector<std::string>& arguments,
                                               const char* examples) {
  po::options_description all = options;  // with the positional argument, which --help does not list
  all.add_options()(positional, po::value<std::string>());
  po::positional_options_description place;
  place.add(positional, 1);
  po::variables_map given;
  try {
    po::store(po::command_line_parser(arguments).options(all).positional(place).run(), given);
  } catch (const po::error& error) {
    throw UsageError(std::string(error.what()) + "; fomoe-train " + command + " --help lists the options");
  }
  if (!given.count("help")) return given;
  std::cout << options << examples;
  return std::nullopt;
}

void write_answer(const std::string& output, const std::string& text) {
  if (output != "-") return write_file(output, text);
  std::cout << std::flush;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw std::runtime_error("stdout: cannot be written");
}

void require_folder(const std::string& option, const std::string& path) {
  if (path.empty() || path == "-") return;
  if (!std::filesystem::is_directory(std::filesystem::absolute(path).parent_path())) {
    throw UsageError("--" + option + ": got \"" + path +
                     "\"; expected a file in an existing folder; for example --" + option + " result.json");
  }
  if (special_file(path).empty()) claim_output("--" + option, path);
}

void require_writable(const std::string& option, const std::string& path) {
  if (path.empty() || path == "-") return;
  require_folder(option, path);
  const AtomicFile made(path);  // and removed
}

void refuse_option(const std::string& option, const std::string& got, const std::string& expected,
                   const std::string& example) {
  throw UsageError("--" + option + ": got " + got + "; expected " + expected + "; for example --" + option +
                   " " + example);
}

}  // namespace fomoe::trainer
