#include "experiments/sweep/journal.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <utility>

#include "experiments/scenario/scenario_source.hpp"

namespace fomoe::sweep {

namespace {

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
  std::ifstream program("/proc/self/exe", std::ios::binary);
  std::string text = {std::istreambuf_iterator<char>(program), {}};
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
    : path_(std::move(path)), header_(fmt::format("fomoe.sweep-journal/1 {:016x}\n", checksum(identity))) {}

Journal::Found Journal::found() const {
  std::ifstream file(path_, std::ios::binary);
  if (!file) return Found::nothing;
  std::string line(header_.size(), '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  if (file && line == header_) return Found::same;
  // A crash of the machine may have left the beginning of the line.
  const bool torn = !file && header_.starts_with(line.substr(0, static_cast<std::size_t>(file.gcount())));
  return torn ? Found::nothing : Found::other;
}

std::uint64_t Journal::go_on(std::uint64_t begin, const Sink& sink) {
  std::ifstream file(path_, std::ios::binary);
  const std::uintmax_t whole = std::filesystem::file_size(path_);
  file.seekg(static_cast<std::streamoff>(header_.size()));
  std::uint64_t next = begin, good_bytes = header_.size();
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
  file.close();
  std::filesystem::resize_file(path_, good_bytes);
  file_.open(path_, std::ios::binary | std::ios::app);
  if (!file_) fail();
  return next;
}

void Journal::start_anew() {
  file_.open(path_, std::ios::binary | std::ios::trunc);
  if (!(file_ << header_).flush()) fail();
}

void Journal::append(const Chunk& chunk) {
  const std::string bytes = serialised(chunk);
  std::string record;
  put(record, bytes.size());
  record += bytes;
  put(record, checksum(bytes));
  if (!(file_ << record).flush()) fail();
}

void Journal::fail() const {
  throw std::runtime_error(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
}

void Journal::remove() {
  file_.close();
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace fomoe::sweep
