#include "experiments/text/plot.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "experiments/text/human.hpp"
#include "platforms/support/parse_number.hpp"

namespace fomoe::commands {
namespace {

constexpr int kUsualWidth = 80, kLeastWidth = 40, kMostWidth = 200;
constexpr int kLeastBar = 10, kWidestShade = 3;
constexpr std::array<const char*, 3> kParts = {"█", "▒", "░"};
constexpr std::array<const char*, 3> kPartNames = {"compute", "exposed communication", "idle"};
constexpr std::array<const char*, 5> kShades = {"·", "░", "▒", "▓", "█"};
constexpr double kSameTimes = 1.001, kManyTimes = 10;

/// The number of columns that COLUMNS names; 0 if it is missing or not a number.
int columns_of_environment() {
  const char* const text = std::getenv("COLUMNS");
  if (text == nullptr) return 0;
  const std::string_view columns = text;
  return parse_number<int>(columns).value_or(0);
}

std::string repeated(std::string_view block, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += block;
  return text;
}

int width_of(const std::string& text) { return static_cast<int>(text_width(text)); }

std::string cut(const std::string& text, int most) {
  if (width_of(text) <= most) return text;
  std::string kept;
  int width = 0;
  for (const char c : text) {
    const bool starts = (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    if (starts && ++width == most) break;
    kept += c;
  }
  return kept + "…";
}

std::string padded(const std::string& text, int width) {
  return text + std::string(static_cast<std::size_t>(std::max(0, width - width_of(text))), ' ');
}

std::string padded_left(const std::string& text, int width) {
  return std::string(static_cast<std::size_t>(std::max(0, width - width_of(text))), ' ') + text;
}

std::vector<std::string> cut_all(std::vector<std::string> labels, int most) {
  for (std::string& label : labels) label = cut(label, most);
  return labels;
}

int widest(const std::vector<std::string>& texts) {
  int width = 0;
  for (const std::string& text : texts) width = std::max(width, width_of(text));
  return width;
}

/// Joins the items, on as many lines as they need.
std::string wrapped(const std::vector<std::string>& items, int width, const std::string& between = "  ") {
  std::string text, line;
  for (const std::string& item : items) {
    if (!line.empty() && width_of(line) + width_of(between) + width_of(item) > width) {
      text += line + '\n';
      line.clear();
    }
    line += (line.empty() ? "" : between) + item;
  }
  return text + line + '\n';
}

std::string wrapped_words(const std::string& text, int width) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  return wrapped(words, width, " ");
}

std::string without_end_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

/// Divides the times from `least` to `most` into as many levels as there are shades.
struct Levels {
  double least = 0, most = 0;
  [[nodiscard]] bool one() const { return most <= least * kSameTimes; }
  [[nodiscard]] bool logarithmic() const { return most >= least * kManyTimes; }
  /// From 0 for the least time to 1 for the most.
  [[nodiscard]] double place(double seconds) const {
    return logarithmic() ? std::log(seconds / least) / std::log(most / least)
                         : (seconds - least) / (most - least);
  }
  [[nodiscard]] std::size_t of(double seconds) const {
    if (one()) return kShades.size() - 1;
    const auto level = static_cast<std::size_t>(place(seconds) * static_cast<double>(kShades.size()));
    return std::min(level, kShades.size() - 1);
  }
  /// Where the level begins.
  [[nodiscard]] double begin(std::size_t level) const {
    const double share = static_cast<double>(level) / static_cast<double>(kShades.size());
    return logarithmic() ? least * std::pow(most / least, share) : least + (most - least) * share;
  }
};

Levels levels_of(const HeatMap& map) {
  Levels levels;
  for (const HeatCell& cell : map.cells) {
    if (!cell.possible) continue;
    levels.least = levels.least > 0 ? std::min(levels.least, cell.seconds) : cell.seconds;
    levels.most = std::max(levels.most, cell.seconds);
  }
  return levels;
}

std::string legend(const HeatMap& map, const Levels& levels, int width) {
  std::vector<std::string> items;
  if (levels.most > 0 && levels.one()) {
    items.push_back(fmt::format("{} {}", kShades.back(), human_time(levels.most)));
  } else if (levels.most > 0) {
    for (std::size_t level = 0; level < kShades.size(); ++level)
      items.push_back(fmt::format("{} {} to {}", kShades[level], human_time(levels.begin(level)),
                                  human_time(levels.begin(level + 1))));
  }
  const auto any = [&](auto&& is) { return std::any_of(map.cells.begin(), map.cells.end(), is); };
  if (any([](const HeatCell& cell) { return !cell.possible; })) items.emplace_back("× impossible");
  if (any([](const HeatCell& cell) { return cell.possible && !cell.fits; }))
    items.emplace_back("! does not fit into GPU memory");
  return wrapped(items, width);
}

/// Rows of cells with two blocks and the time in words; empty if they are wider than `width`.
std::string cells_with_times(const HeatMap& map, const Levels& levels, const std::vector<std::string>& labels,
                             int width) {
  std::vector<Row> rows = {{""}};
  rows.front().insert(rows.front().end(), map.columns.begin(), map.columns.end());
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    Row& row = rows.emplace_back(Row{labels[r]});
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const HeatCell& cell = map.cells[r * map.columns.size() + c];
      row.push_back(!cell.possible ? "×"
                                   : repeated(kShades[levels.of(cell.seconds)], 2) + ' ' +
                                         human_time(cell.seconds) + (cell.fits ? "" : "!"));
    }
  }
  // Padding at the right keeps the blocks of a column below each other.
  int total = widest(labels);
  for (std::size_t c = 1; c <= map.columns.size(); ++c) {
    int cell_width = 0;
    for (const Row& row : rows) cell_width = std::max(cell_width, width_of(row[c]));
    for (Row& row : rows) row[c] = padded(row[c], cell_width);
    total += 2 + cell_width;
  }
  return total > width ? "" : aligned(rows);
}

std::string cells_of_shades(const HeatMap& map, const Levels& levels, const std::vector<std::string>& labels,
                            int width) {
  const int label_width = widest(labels);
  const auto columns = static_cast<int>(map.columns.size());
  const int cell_width = std::clamp((width - label_width - 2) / columns, 1, kWidestShade);
  std::string text = wrapped_words(
      fmt::format("columns, from left to right: {} to {}", map.columns.front(), map.columns.back()), width);
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    std::string line = padded_left(labels[r], label_width) + "  ";
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const HeatCell& cell = map.cells[r * map.columns.size() + c];
      const char* const shade = cell.possible ? kShades[levels.of(cell.seconds)] : " ";
      const char* const last = !cell.possible ? "×" : cell.fits ? shade : "!";
      line += repeated(shade, cell_width - 1) + last;
    }
    text += without_end_spaces(line);
  }
  return text;
}

}  // namespace

int plot_width() {
  int width = columns_of_environment();
  winsize size{};
  if (width <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  return width <= 0 ? kUsualWidth : std::clamp(width, kLeastWidth, kMostWidth);
}

std::string time_bars(const std::string& title, const std::vector<TimeBar>& bars, int width) {
  std::vector<std::string> labels, ends;
  double longest_s = 0;
  bool idle = false;
  for (const TimeBar& bar : bars) {
    labels.push_back(cut(bar.label, width / 3));
    ends.push_back(bar.wall_clock_s > 0 ? human_time(bar.wall_clock_s) : "");
    if (!bar.remark.empty()) ends.back() += (ends.back().empty() ? "" : ", ") + bar.remark;
    longest_s = std::max(longest_s, bar.wall_clock_s);
    idle = idle || bar.idle > 0.005 * (bar.compute + bar.exposed + bar.idle);
  }
  const int label_width = widest(labels);
  const int least_end = width - label_width - 4 - kLeastBar;  // the widest end beside which a bar is readable
  ends = cut_all(std::move(ends), least_end);
  const int room = width - label_width - 4 - widest(ends);
  std::vector<std::string> items = {title + ":"};
  for (std::size_t part = 0; part < (idle ? 3U : 2U); ++part)
    items.push_back(fmt::format("{} {}", kParts[part], kPartNames[part]));
  std::string text = wrapped(items, width);
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const TimeBar& bar = bars[i];
    const double sum = bar.compute + bar.exposed + bar.idle;
    // Each end of a part is rounded, rather than each length, so that the whole bar has the right length.
    const auto cells = [&](double until) {
      return sum > 0 ? static_cast<int>(std::lround(room * (bar.wall_clock_s / longest_s) * (until / sum)))
                     : 0;
    };
    const int compute = cells(bar.compute), all = cells(sum);
    const int exposed = idle ? cells(bar.compute + bar.exposed) : all;
    std::string drawn = repeated(kParts[0], compute) + repeated(kParts[1], exposed - compute) +
                        repeated(kParts[2], all - exposed);
    if (drawn.empty() && bar.wall_clock_s > 0) drawn = "▏";
    text += without_end_spaces(padded(labels[i], label_width) + "  " + padded(drawn, room) + "  " + ends[i]);
  }
  return text;
}

int most_columns(int width) { return width / 2; }

std::string heat_map(const HeatMap& map, int width) {
  const Levels levels = levels_of(map);
  const std::vector<std::string> labels = cut_all(map.rows, width / 3);
  std::string cells = cells_with_times(map, levels, labels, width);
  if (cells.empty()) cells = cells_of_shades(map, levels, labels, width);
  return wrapped_words(map.title, width) + cells + legend(map, levels, width);
}

}  // namespace fomoe::commands
