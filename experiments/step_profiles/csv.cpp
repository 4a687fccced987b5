#include "experiments/files/csv.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/scenario/toml/document.hpp"
#include "experiments/step_profiles/log_reader.hpp"
#include "experiments/step_profiles/log_text.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::step_profiles {
namespace {

using Cells = std::vector<std::string>;

class Header {
 public:
  Header(const std::string& path, const std::string& line) : columns_(scenario::csv_cells(line)) {
    const Cells known = {"step_s", "forward_s", "backward_s", "optimizer_s", "sequences", "local_experts"};
    const std::string place = path + ":1";
    for (auto column = columns_.begin(); column != columns_.end(); ++column) {
      if (std::find(known.begin(), known.end(), *column) == known.end()) {
        scenario::fail(place, "header", '"' + *column + '"',
                       "only columns of the list " + scenario::joined(known), "step_s,sequences",
                       scenario::nearest(*column, known));
      }
      if (std::find(columns_.begin(), column, *column) != column)
        scenario::fail(place, "header", '"' + *column + "\" twice", "each column once", "step_s,sequences");
    }
    const bool parts = has("forward_s") && has("backward_s") && has("optimizer_s");
    const bool any_part = has("forward_s") || has("backward_s") || has("optimizer_s");
    if (has("step_s") ? any_part : !parts) {
      scenario::fail(place, "header", '"' + line + '"',
                     "either step_s, or all of forward_s, backward_s and optimizer_s", "step_s,sequences");
    }
  }
  [[nodiscard]] bool has(const char* name) const { return index(name) < columns_.size(); }
  [[nodiscard]] std::size_t index(const char* name) const {
    return static_cast<std::size_t>(std::find(columns_.begin(), columns_.end(), name) - columns_.begin());
  }
  [[nodiscard]] std::size_t size() const { return columns_.size(); }

 private:
  Cells columns_;
};

LoggedStep read_row(const Header& header, const Cells& cells, const std::string& place) {
  const auto seconds = [&](const char* name) {
    return logged_number(cells[header.index(name)], place, name, "0.42");
  };
  const auto count = [&](const char* name) {
    return logged_count(cells[header.index(name)], place, name, "8");
  };
  LoggedStep step;
  if (header.has("step_s")) {
    step.seconds = seconds("step_s");
  } else {
    step.parts = {seconds("forward_s"), seconds("backward_s"), seconds("optimizer_s")};
  }
  if (header.has("sequences")) step.sequences = count("sequences");
  if (header.has("local_experts")) step.local_experts = count("local_experts");
  return step;
}

}  // namespace

Log read_csv(const std::string& path, const std::string& text) {
  Log log;
  std::optional<Header> header;
  for_each_line(text, [&](const std::string& line, std::int64_t number) {
    if (!header) {
      header.emplace(path, line);
      return;
    }
    if (line.empty()) return;
    const std::string place = fmt::format("{}:{}", path, number);
    const Cells cells = scenario::csv_cells(line);
    if (cells.size() != header->size()) {
      scenario::fail(place, "row", fmt::format("{} cells", cells.size()),
                     fmt::format("{}, one for each column of the header", header->size()), "0.42,8");
    }
    log.steps.push_back(read_row(*header, cells, place));
    log.steps.back().line = number;
  });
  return log;
}

}  // namespace fomoe::step_profiles
