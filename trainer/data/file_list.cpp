#include "trainer/data/file_list.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "trainer/io/hash.hpp"

namespace fomoe::trainer {

using nlohmann::json;

namespace {

constexpr std::int64_t kPlacesOfFile = 64, kTokensAtPlace = 64;

std::string sample_hash(const TokenFile& tokens) {
  Hash hash;
  std::vector<std::int64_t> ids;
  const std::int64_t places = std::min(kPlacesOfFile, (tokens.size() + kTokensAtPlace - 1) / kTokensAtPlace);
  for (std::int64_t i = 0; i < places; ++i) {
    const std::int64_t begin = i * tokens.size() / places;
    ids.resize(static_cast<std::size_t>(std::min(kTokensAtPlace, tokens.size() - begin)));
    tokens.copy(begin, static_cast<std::int64_t>(ids.size()), ids.data());
    hash.add(ids.data(), ids.size() * sizeof ids.front());
  }
  return hash.text();
}

const ListedFile* find(const FileList& files, const std::string& name) {
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const ListedFile& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

std::string tokens_text(const ListedFile& file) { return std::to_string(file.tokens) + " tokens"; }

}  // namespace

FileList file_list(const Corpus& corpus) {
  FileList files;
  for (const Corpus::File& file : corpus.files())
    if (file.tokens.here()) files.push_back({file.name, file.tokens.size(), sample_hash(file.tokens)});
  return files;
}

std::string to_text(const FileList& files) {
  json list = json::array();
  for (const ListedFile& file : files) list.push_back({file.name, file.tokens, file.hash});
  return list.dump();
}

FileList file_list_from(const std::string& text) {
  FileList files;
  try {
    for (const json& file : json::parse(text)) files.push_back({file.at(0), file.at(1), file.at(2)});
  } catch (const json::exception& error) {
    throw std::invalid_argument(std::string("a list of files cannot be read: ") + error.what());
  }
  return files;
}

FileList united(const std::vector<FilesAt>& lists) {
  std::map<std::string, std::pair<ListedFile, std::string>> all;  // by name: the file, and who has it
  for (const FilesAt& list : lists) {
    for (const ListedFile& file : list.files) {
      const auto [known, added] = all.try_emplace(file.name, file, list.who);
      const auto& [other, who] = known->second;
      if (added || other == file) continue;
      throw std::invalid_argument(
          "trainer.data: got " + file.name + " with " +
          (file.tokens == other.tokens
               ? tokens_text(file) + " at " + who + " and other " + tokens_text(other) + " at " + list.who
               : tokens_text(other) + " at " + who + " and " + tokens_text(file) + " at " + list.who) +
          "; expected the same file at all sites that have it; for example a copy of that at " + who);
    }
  }
  FileList files;
  for (const auto& [name, file] : all) files.push_back(file.first);
  return files;
}

std::string hash_of(const FileList& files) {
  Hash value;
  std::int64_t tokens = 0;
  for (const ListedFile& file : files) {
    value.add(file.name.data(), file.name.size());
    value.add(&file.tokens, sizeof file.tokens);
    value.add(file.hash.data(), file.hash.size());
    tokens += file.tokens;
  }
  return std::to_string(tokens) + " tokens in files " + value.text();
}

Corpus with_files_elsewhere(const Corpus& own, const FileList& all) {
  std::map<std::string, const Corpus::File*> here;
  for (const Corpus::File& file : own.files()) here[file.name] = &file;
  std::vector<Corpus::File> files;
  for (const ListedFile& listed : all) {
    const auto found = here.find(listed.name);
    files.push_back(found != here.end() ? *found->second
                                        : Corpus::File{listed.name, Corpus::domain_of(listed.name),
                                                       TokenFile::elsewhere(listed.name, listed.tokens)});
  }
  return Corpus::of(std::move(files));
}

void check_has(const FilesAt& process, const std::vector<std::size_t>& wanted, const FileList& all,
               const std::vector<FilesAt>& lists) {
  for (const std::size_t file : wanted) {
    const std::string& name = all[file].name;
    if (find(process.files, name) != nullptr) continue;
    const auto other = std::find_if(lists.begin(), lists.end(),
                                    [&](const FilesAt& list) { return find(list.files, name) != nullptr; });
    throw std::invalid_argument(
        "trainer.data: got no " + name + " at " + process.who +
        ", which trainer.data_split = \"domain\" deals to it; expected all files of its domains in its "
        "folder" +
        (other == lists.end() ? "" : "; for example a copy of that at " + other->who));
  }
}

}  // namespace fomoe::trainer
