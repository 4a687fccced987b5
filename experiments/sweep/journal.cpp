#include "experiments/sweep/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <utility>

#include "experiments/scenario/scenario_source.hpp"
#include "platforms/support/whole_file.hpp"

namespace fomoe::sweep {

namespace {

constexpr const char* kName = "fomoe.sweep-journal/1 ";

// FNV-1a (Fowler, Noll, Vo), 64 bits. It detects accidental damage, not tampering.
std::uint64_t checksum(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
  return hash;
}

void put(std::string& text, const void* data, std::size_t size) {
  text.append(static_cast<const char*>(data), size);
}
void put(std::string& text, std::uint64_t value) { put(text, &value, sizeof value); }

std::string serialised(const Chunk& chunk) {
  std::string text;
  put(text, chunk.first_row);
  put(text, chunk.rows);
  for (const std::vector<double>& column : chunk.results)
    put(text, column.data(), chunk.rows * sizeof(double));
  for (const std::string& problem : chunk.problems) {
    put(text, problem.size());
    text += problem;
  }
  return text;
}

// Every read is checked against the remaining size.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  bool take(void* data, std::size_t size) {
    if (left_.size() < size) return false;
    std::memcpy(data, left_.data(), size);
    left_.remove_prefix(size);
    return true;
  }
  bool take(std::string& text, std::uint64_t size) {
    if (left_.size() < size) return false;
    text = left_.substr(0, size);
    left_.remove_prefix(size);
    return true;
  }

 private:
  std::string_view left_;
};

std::optional<Chunk> chunk_from(std::string_view bytes) {
  Reader reader(bytes);
  Chunk chunk;
  std::uint64_t rows = 0;
  if (!reader.take(&chunk.first_row, sizeof chunk.first_row) || !reader.take(&rows, sizeof rows)) return {};
  if (rows == 0 || rows > kChunkRows) return {};
  chunk.resize(rows);
  for (std::vector<double>& column : chunk.results) {
    if (!reader.take(column.data(), rows * sizeof(double))) return {};
  }
  for (std::string& problem : chunk.problems) {
    std::uint64_t size = 0;
    if (!reader.take(&size, sizeof size) || !reader.take(problem, size)) return {};
  }
  return chunk;
}

}  // namespace

std::string identity_of(const Request& request, const sim::RunOptions& options) {
  // Rows of two builds of the program must not be mixed in one table.
  std::string text = whole_file("/proc/self/exe").value_or("");
  const auto add = [&](const std::vector<std::string>& overrides) {
    scenario::ReadOptions reading;
    reading.overrides = overrides;
    try {
      const scenario::ScenarioSource source = scenario::scenario_source(request.scenario_path, reading);
      text += source.toml;
      for (const auto& [name, content] : source.files) text.append(name + '\0').append(content + '\0');
    } catch (const FileError& error) {
      text += error.what();  // the rows report this error
    }
  };
  add(request.overrides);
  for (const Axis& axis : request.grid.axes()) {
    text += axis.column + '\0';
    for (const double value : axis.numbers) text += fmt::format("{} ", value);
    for (const std::string& word : axis.words) {
      text += word + '\0';
      std::vector<std::string> with = request.overrides;
      with.push_back(axis.key + "=" + word);
      add(with);  // the word may name a file, whose content counts too
    }
  }
  text += fmt::format("{} {} {} {} {} ", request.begin, request.end, options.rounds.value_or(0),
                      options.all_rounds, options.bundle);
  for (const std::string_view name : kResults) text += fmt::format("{} ", name);
  return text;
}

Journal::Journal(std::string path, const std::string& identity)
    : path_(std::move(path)), header_(fmt::format("{}{:016x}\n", kName, checksum(identity))) {}

Journal::Found Journal::found() const {
  struct stat status {};
  if (::lstat(path_.c_str(), &status) != 0) return Found::nothing;
  if (!S_ISREG(status.st_mode)) return Found::foreign;
  std::ifstream file(path_, std::ios::binary);
  std::string line(header_.size(), '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  if (file.bad() || !file.is_open()) fail("read");
  line.resize(static_cast<std::size_t>(file.gcount()));
  if (line == header_) return Found::same;
  // A crash of the machine may have left the beginning of the line.
  if (header_.starts_with(line)) return Found::nothing;
  return line.starts_with(kName) || std::string_view(kName).starts_with(line) ? Found::other : Found::foreign;
}

std::uint64_t Journal::stored_rows(std::uint64_t begin) const {
  std::uint64_t good_bytes = 0;
  return read(
             begin, [](const Chunk&) {}, good_bytes) -
         begin;
}

std::uint64_t Journal::read(std::uint64_t begin, const Sink& sink, std::uint64_t& good_bytes) const {
  std::ifstream file(path_, std::ios::binary);
  const std::uintmax_t whole = std::filesystem::file_size(path_);
  file.seekg(static_cast<std::streamoff>(header_.size()));
  std::uint64_t next = begin;
  good_bytes = header_.size();
  for (;;) {
    std::uint64_t size = 0, sum = 0;
    if (!file.read(reinterpret_cast<char*>(&size), sizeof size) || size > whole) break;
    std::string bytes(size, '\0');
    if (!file.read(bytes.data(), static_cast<std::streamsize>(size)) ||
        !file.read(reinterpret_cast<char*>(&sum), sizeof sum) || sum != checksum(bytes))
      break;
    const std::optional<Chunk> chunk = chunk_from(bytes);
    if (!chunk || chunk->first_row != next) break;
    sink(*chunk);
    next += chunk->rows;
    good_bytes += 2 * sizeof(std::uint64_t) + size;
  }
  if (file.bad()) fail("read");  // what cannot be read is not missing
  return next;
}

std::uint64_t Journal::go_on(std::uint64_t begin, const Sink& sink) {
  std::uint64_t good_bytes = 0;
  const std::uint64_t next = read(begin, sink, good_bytes);
  open();
  if (::ftruncate(file_.get(), static_cast<off_t>(good_bytes)) != 0) fail("written");
  return next;
}

void Journal::start_anew() {
  open();
  if (::ftruncate(file_.get(), 0) != 0) fail("written");
  write(header_);
}

void Journal::append(const Chunk& chunk) {
  const std::string bytes = serialised(chunk);
  std::string record;
  put(record, bytes.size());
  record += bytes;
  put(record, checksum(bytes));
  write(record);
}

// A symbolic link could lead to any file of the user.
void Journal::open() {
  file_ = Descriptor(
      ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  if (file_.get() < 0) fail("written");
}

void Journal::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file_.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("written");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void Journal::fail(const char* what) const {
  throw std::runtime_error(fmt::format("{}: cannot be {}: {}", path_, what, std::strerror(errno)));
}

void Journal::remove() {
  struct stat own {
  }, named{};
  if (file_.get() >= 0 && ::fstat(file_.get(), &own) == 0 && ::lstat(path_.c_str(), &named) == 0 &&
      own.st_dev == named.st_dev && own.st_ino == named.st_ino)
    ::unlink(path_.c_str());
  file_.reset();
}

}  // namespace fomoe::sweep
