#include "experiments/figures/page/figure_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/figures/trained/claims.hpp"

namespace fomoe::figures {

namespace {

constexpr std::size_t kMostRows = 200;

/// Text in a cell of a table.
std::string cell_text(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.replace(at, 1, "\\|");
  return text;
}

std::string text_of(const Cell& cell) {
  if (const auto* word = std::get_if<std::string>(&cell)) return cell_text(*word);
  if (const auto* number = std::get_if<double>(&cell)) return fmt::format("{:.5g}", *number);
  return fmt::format("{}", std::get<std::int64_t>(cell));
}

std::string line_of(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += ' ' + cell + " |";
  return text + '\n';
}

std::string header_of(const std::vector<std::string>& columns) {
  return line_of(columns) + line_of(std::vector<std::string>(columns.size(), "---"));
}

std::string percent(const Cell& cell) {
  const auto* number = std::get_if<double>(&cell);
  return number == nullptr ? "" : fmt::format("{:+.1f} %", *number);
}

std::string claims_of(const Experiment& experiment, const Figure& figure) {
  const Figure table = claims_table({figure}, {experiment.id});
  if (table.rows.empty()) return "";
  std::string text = "## Claims\n" + header_of({"claim", "paper", "ours", "95 % interval", "seeds"});
  for (const std::vector<Cell>& row : table.rows) {  // the columns of claims_table()
    const std::string finding = text_of(row[9]), low = percent(row[6]);
    text += line_of({text_of(row[1]) + (finding.empty() ? "" : " (" + finding + ")"),
                     text_of(row[2]) + ' ' + percent(row[3]), text_of(row[4]) + ' ' + percent(row[5]),
                     low.empty() ? "" : low + " to " + percent(row[7]), text_of(row[8])});
  }
  return text +
         "\nA number is how much larger the perplexity is that the claim says is larger. The paper's verdict "
         "is "
         "the sign of its printed means; ours is that of the whole interval.\n\n";
}

std::string assumptions_of(const Json& assumptions) {
  if (assumptions.empty()) return "";
  std::string text = "## Assumptions\n" + header_of({"name", "value"});
  for (const auto& [name, value] : assumptions.items())
    text +=
        line_of({cell_text(name), cell_text(value.is_string() ? value.get<std::string>() : value.dump())});
  return text + "\n`--set NAME=VALUE` changes those that the command lists as changeable.\n\n";
}

std::string rows_of(const Experiment& experiment, const Figure& figure) {
  const std::size_t shown = std::min(figure.rows.size(), kMostRows);
  std::string text = "## Series\n" + header_of(figure.columns);
  for (std::size_t r = 0; r < shown; ++r) {
    std::vector<std::string> cells;
    for (const Cell& cell : figure.rows[r]) cells.push_back(text_of(cell));
    text += line_of(cells);
  }
  if (shown < figure.rows.size())
    text += fmt::format("\n{} more rows are in {}.csv.\n", figure.rows.size() - shown, experiment.id);
  return text;
}

}  // namespace

std::string page_text(const Experiment& experiment, const Figure& figure, const Json& assumptions) {
  std::string text =
      fmt::format("# {}\n{}; FoMoE, arXiv 2606.19025.\n\n", experiment.id, experiment.sentence);
  text += claims_of(experiment, figure);
  text +=
      fmt::format("## One point again\n```sh\n{}fomoe reproduce {}\n```\n\n", figure.again, experiment.id);
  if (!figure.notes.empty()) text += "## What differs, and what is not known\n";
  for (const std::string& note : figure.notes) text += "- " + note + '\n';
  if (!figure.notes.empty()) text += '\n';
  return text + assumptions_of(assumptions) + rows_of(experiment, figure);
}

}  // namespace fomoe::figures
