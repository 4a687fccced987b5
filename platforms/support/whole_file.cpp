#include "platforms/support/whole_file.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

namespace fomoe {

std::optional<std::string> whole_file(const std::string& path) {
  if (is_folder(path)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream content;
  content << file.rdbuf();  // sets failbit for an empty file, which is no error
  if (file.bad()) return std::nullopt;
  return std::move(content).str();
}

bool path_exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

}  // namespace fomoe
