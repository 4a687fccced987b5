// Reads step times from CSV files: with columns of our names, or of other names that the user maps to them,
// such as those of exports of wandb and TensorBoard.
#include "experiments/files/csv.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/scenario/toml/document.hpp"
#include "experiments/step_profiles/logs/log_reader.hpp"
#include "experiments/step_profiles/logs/log_text.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::step_profiles {
namespace {

using Cells = std::vector<std::string>;

/// Quantities one of which gives the time of a step.
const Cells kTimes = {"step_s", "step_ms", "tokens_per_s_per_gpu", "tokens_per_s"};
/// Those that a file may have as names of its columns.
const Cells kOwnNames = {"step_s", "forward_s", "backward_s", "optimizer_s", "sequences", "local_experts"};

bool has_any(const std::string& text, const std::vector<const char*>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return text.find(part) != std::string::npos; });
}

/// The mapping of a header in other words that seems right: --column 'step_s=run-1 - timing/step_time'.
std::string likely_mapping(const Cells& columns) {
  std::string best = "step_s=" + (columns.empty() ? std::string("step_time") : columns.back());
  for (const std::string& column : columns) {
    std::string lower = column;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    if (lower.ends_with("__min") || lower.ends_with("__max") || lower == "wall time") continue;
    const bool tokens = has_any(lower, {"tokens", "tps", "throughput"});
    if (tokens && has_any(lower, {"gpu", "device", "tps"})) best = "tokens_per_s_per_gpu=" + column;
    if (tokens && !has_any(lower, {"gpu", "device", "tps"})) best = "tokens_per_s=" + column;
    if (tokens || !has_any(lower, {"time", "timing", "duration", "second", "elapsed", "(s)", "value"}))
      continue;
    return (has_any(lower, {"_ms", "(ms)", "/ms", "millisecond"}) ? "step_ms=" : "step_s=") + column;
  }
  return best;
}

std::string quoted_list(const Cells& columns) {
  std::string text;
  for (const std::string& column : columns) text += (text.empty() ? "\"" : ", \"") + column + '"';
  return text;
}

class Header {
 public:
  Header(std::string place, const std::string& line, const Columns& mapped)
      : place_(std::move(place)), columns_(scenario::csv_cells(line)) {
    // Exports may begin with a byte order mark.
    if (!columns_.empty() && columns_[0].starts_with("\xef\xbb\xbf"))
      columns_ = scenario::csv_cells(std::string_view(line).substr(3));
    if (mapped.empty()) {
      read_own(line);
    } else {
      read_mapped(mapped);
    }
  }
  [[nodiscard]] bool has(const std::string& quantity) const { return index_.contains(quantity); }
  [[nodiscard]] std::size_t index(const std::string& quantity) const { return index_.at(quantity); }
  [[nodiscard]] std::size_t size() const { return columns_.size(); }
  /// Rows of an export lack quantities that another row of the same step has.
  [[nodiscard]] bool may_lack_cells() const { return mapped_; }

 private:
  [[noreturn]] void refuse_times(const std::string& line) const {
    scenario::fail(place_, "header", '"' + line + '"',
                   "either step_s, or all of forward_s, backward_s and optimizer_s", "step_s,sequences");
  }

  void read_own(const std::string& line) {
    const auto known = [](const std::string& name) {
      return std::find(kOwnNames.begin(), kOwnNames.end(), name) != kOwnNames.end();
    };
    const bool ours = std::any_of(columns_.begin(), columns_.end(), known);
    if (!ours) {
      scenario::fail(place_, "header", "no column with the times of steps",
                     "--column with the column of one of " + scenario::joined(csv_quantities()) +
                         "; the columns are " + quoted_list(columns_),
                     "--column " + shell_word(likely_mapping(columns_)));
    }
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!known(columns_[i])) {
        scenario::fail(place_, "header", '"' + columns_[i] + '"',
                       "only columns of the list " + scenario::joined(kOwnNames), "step_s,sequences",
                       scenario::nearest(columns_[i], kOwnNames));
      }
      if (!index_.emplace(columns_[i], i).second)
        scenario::fail(place_, "header", '"' + columns_[i] + "\" twice", "each column once",
                       "step_s,sequences");
    }
    const bool parts = has("forward_s") && has("backward_s") && has("optimizer_s");
    const bool any_part = has("forward_s") || has("backward_s") || has("optimizer_s");
    if (has("step_s") ? any_part : !parts) refuse_times(line);
  }

  void read_mapped(const Columns& mapped) {
    mapped_ = true;
    for (const auto& [quantity, column] : mapped) {
      const auto found = std::find(columns_.begin(), columns_.end(), column);
      if (found == columns_.end()) {
        scenario::fail(
            place_, "--column " + quantity, '"' + column + '"', "one of the columns " + quoted_list(columns_),
            "--column " + shell_word(likely_mapping(columns_)), scenario::nearest(column, columns_));
      }
      index_[quantity] = static_cast<std::size_t>(found - columns_.begin());
    }
    const auto times =
        std::count_if(kTimes.begin(), kTimes.end(), [&](const auto& name) { return has(name); });
    const bool any_part = has("forward_s") || has("backward_s") || has("optimizer_s");
    const bool parts = has("forward_s") && has("backward_s") && has("optimizer_s");
    if (times + (any_part ? 1 : 0) != 1 || any_part != parts) {
      scenario::fail(
          place_, "--column", fmt::format("{} columns with times of steps", times + (any_part ? 1 : 0)),
          "one of " + scenario::joined(kTimes) + ", or all of forward_s, backward_s and optimizer_s",
          "--column " + shell_word(likely_mapping(columns_)));
    }
  }

  std::string place_;
  Cells columns_;
  std::map<std::string, std::size_t> index_;
  bool mapped_ = false;
};

LoggedStep read_row(const Header& header, const Cells& cells, const std::string& place) {
  const auto number = [&](const char* name) {
    return logged_number(cells[header.index(name)], place, name, "0.42");
  };
  const auto count = [&](const char* name) {
    return logged_count(cells[header.index(name)], place, name, "8");
  };
  LoggedStep step;
  if (header.has("step_s")) {
    step.seconds = number("step_s");
  } else if (header.has("step_ms")) {
    step.seconds = 1e-3 * number("step_ms");
  } else if (header.has("tokens_per_s_per_gpu")) {
    step.tokens_per_gpu_s = number("tokens_per_s_per_gpu");
  } else if (header.has("tokens_per_s")) {
    step.tokens_per_s = number("tokens_per_s");
  } else {
    step.parts = {number("forward_s"), number("backward_s"), number("optimizer_s")};
  }
  if (header.has("sequences")) step.sequences = Rounded::exactly(static_cast<double>(count("sequences")));
  if (header.has("local_experts")) step.local_experts = count("local_experts");
  return step;
}

}  // namespace

const std::vector<std::string>& csv_quantities() {
  static const Cells all = {"step_s",       "step_ms",   "tokens_per_s_per_gpu",
                            "tokens_per_s", "forward_s", "backward_s",
                            "optimizer_s",  "sequences", "local_experts"};
  return all;
}

std::vector<Log> read_csv(const std::string& path, const std::string& text, const Columns& columns) {
  Log log;
  std::optional<Header> header;
  for_each_line(text, [&](const std::string& line, std::int64_t number) {
    if (!header) {
      if (!line.starts_with('#')) header.emplace(fmt::format("{}:{}", path, number), line, columns);
      return;
    }
    if (line.empty()) return;
    const std::string place = fmt::format("{}:{}", path, number);
    const Cells cells = scenario::csv_cells(line);
    if (cells.size() != header->size()) {
      scenario::fail(place, "row", fmt::format("{} cells", cells.size()),
                     fmt::format("{}, one for each column of the header", header->size()), "0.42,8");
    }
    if (header->may_lack_cells()) {
      for (const auto& [quantity, column] : columns) {
        const std::string& cell = cells[header->index(quantity)];
        if (cell.empty() || cell == "NaN" || cell == "null") return;
      }
    }
    log.steps.push_back(read_row(*header, cells, place));
    log.steps.back().line = number;
  });
  if (log.steps.empty()) return {};
  return {log};
}

}  // namespace fomoe::step_profiles
