#include "experiments/scenario/scenario_source.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/toml/document.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::scenario {
namespace {

namespace fs = std::filesystem;

// All keys that name a file.
struct FileKey {
  const char* table;
  const char* name;
};
constexpr FileKey kFileKeys[] = {{"model", "hf_config"}, {"model", "shape"},   {"strategy", "routing_counts"},
                                 {"compute", "profile"}, {"platform", "file"}, {"platform", "trace"},
                                 {"prices", "file"},     {"quality", "file"}};

std::string content_of(const std::string& path, const std::string& key) {
  std::optional<std::string> content = whole_file(path);
  if (!content)
    fail(path + ":1", key, "no readable file", "the file that the scenario names", "chmod +r " + path);
  return *std::move(content);
}

std::string text_of(const toml::table& table) {
  std::ostringstream text;
  text << table << '\n';
  return text.str();
}

// A platform file may name further files.
std::string platform_content(const std::string& path, ScenarioSource& source) {
  if (fs::path(path).extension() == ".xml") return content_of(path, "platform.file");
  const Document document = Document::read(path, "platform file", "platforms/eight-regions.toml");
  toml::table root = document.root();
  const auto paths = root["paths_csv"].value<std::string>();
  if (!paths) return content_of(path, "platform.file");
  const std::string name = fs::path(*paths).filename().string();
  source.files[name] = content_of(document.beside(*paths), "paths_csv");
  root.insert_or_assign("paths_csv", name);
  return text_of(root);
}

/// A temporary folder that is removed with its contents.
class UnpackedFolder {
 public:
  UnpackedFolder() : path_((fs::temp_directory_path() / "fomoe-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr)
      throw std::runtime_error("cannot create a temporary folder in " + fs::temp_directory_path().string());
  }
  ~UnpackedFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  UnpackedFolder(const UnpackedFolder&) = delete;
  UnpackedFolder& operator=(const UnpackedFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void write(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  if (!file.flush()) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace

ScenarioSource scenario_source(const std::string& path, const ReadOptions& options) {
  Document document = Document::read(path, "scenario", "experiments/scenarios/two-sites.toml");
  for (const std::string& assignment : options.overrides) document.override_key(assignment);
  displace_alternatives(document);
  ScenarioSource source;
  toml::table root = document.root();
  if (options.seed) root.insert_or_assign("seed", static_cast<std::int64_t>(*options.seed));
  if (toml::table* trainer = root["trainer"].as_table()) {
    trainer->erase("data");
    trainer->erase("validation_data");
  }
  std::vector<std::pair<FileKey, toml::table*>> naming;  // the tables that may name a file
  for (const FileKey& key : kFileKeys) {
    if (toml::table* table = root[key.table].as_table()) naming.emplace_back(key, table);
  }
  if (toml::array* sites = root["site"].as_array()) {
    for (toml::node& site : *sites)
      if (toml::table* table = site.as_table()) naming.emplace_back(FileKey{"site", "profile"}, table);
  }
  for (const auto& [key, table] : naming) {
    const auto named = (*table)[key.name].value<std::string>();
    if (!named || named->starts_with("published:")) continue;
    const std::string file = document.beside(*named);
    if (!options.compute_required && std::string_view(key.name) == "profile" && !path_exists(file)) {
      // The run did not read this profile. If a later prediction needs the profile, the reader reports that
      // it is missing.
      continue;
    }
    // Files keep their names, because a model is named after its file. If two files have the same name, the
    // name of the TOML table is put before the second name.
    std::string name = fs::path(file).filename().string();
    for (int i = 0; source.files.contains(name); ++i)
      name.insert(0, std::string(key.table) + (i == 0 ? "" : std::to_string(i)) + '-');
    const bool platform = std::string_view(key.table) == "platform" && std::string_view(key.name) == "file";
    source.files[name] =
        platform ? platform_content(file, source) : content_of(file, std::string(key.table) + '.' + key.name);
    table->insert_or_assign(key.name, name);
  }
  source.toml = text_of(root);
  return source;
}

costmodel::Scenario read_scenario(const ScenarioSource& source, const std::string& name,
                                  const std::vector<std::string>& overrides) {
  const UnpackedFolder folder;
  write(folder.path() + "/scenario.toml", source.toml);
  for (const auto& [file, content] : source.files) {
    // The name of a file comes from a report and must not lead to a file outside of the folder.
    if (fs::path(file).filename() != file || file == "." || file == "..")
      fail(name, "run.files", '"' + file + '"', "a file name without a folder", "profile.json");
    write(folder.path() + '/' + file, content);
  }
  ReadOptions options;
  options.overrides = overrides;
  try {
    return read_scenario(folder.path() + "/scenario.toml", options);
  } catch (const FileError& error) {
    std::string message = error.what();
    for (std::size_t at = 0; (at = message.find(folder.path(), at)) != std::string::npos; at += name.size())
      message.replace(at, folder.path().size(), name);
    throw FileError(message);
  }
}

}  // namespace fomoe::scenario
