// Which files of tokens each site has, where sites need not have those of others (trainer.data_split =
// "domain"). Every process reports its own files before batches are dealt; from these lists all processes
// make the same corpus, in which some files are at other sites. This header does not include LibTorch.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/data/corpus.hpp"

namespace fomoe::trainer {

struct ListedFile {
  std::string name;  // relative to the folder
  std::int64_t tokens = 0;
  std::string hash;  // of 64 tokens at each of 64 places, or of all if there are fewer
  friend bool operator==(const ListedFile&, const ListedFile&) = default;
};
using FileList = std::vector<ListedFile>;

/// The files of a process, and its name in messages.
struct FilesAt {
  std::string who;
  FileList files;
};

/// Reads a sample of each file. Files that are at another site are left out.
FileList file_list(const Corpus& corpus);

std::string to_text(const FileList& files);
/// Throws std::invalid_argument if the text is not such a list.
FileList file_list_from(const std::string& text);

/// All files of all lists, in the order in which a folder has them. Throws std::invalid_argument if two
/// processes have different files under one name, and names both.
FileList united(const std::vector<FilesAt>& lists);

/// A hash of names, sizes and samples, which is the same for all processes: "12345 tokens 1a2b3c".
std::string hash_of(const FileList& files);

/// The corpus with all these files, of which those that `own` lacks are at another site.
Corpus with_files_elsewhere(const Corpus& own, const FileList& all);

/// Throws std::invalid_argument if the process lacks one of these files of `all`, and names it, the file, and
/// who has it.
void check_has(const FilesAt& process, const std::vector<std::size_t>& wanted, const FileList& all,
               const std::vector<FilesAt>& lists);

}  // namespace fomoe::trainer
