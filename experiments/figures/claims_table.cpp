#include "experiments/figures/claims_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "experiments/text/human.hpp"

namespace fomoe::figures {

namespace {

struct Row {
  std::string figure, sentence, paper, ours, finding;
  std::optional<double> of_paper, effect, low, high;  // per cent
  std::optional<std::int64_t> seeds;
};

std::optional<double> percent(const Json& claim, const char* nats) {
  if (!claim.contains(nats)) return {};
  return 100 * std::expm1(claim[nats].get<double>());
}

void add(const Json& claim, bool of_paper, const std::string& figure, std::vector<Row>& rows) {
  const std::string sentence = claim["claim"];
  const auto same = [&](const Row& row) { return row.figure == figure && row.sentence == sentence; };
  auto row = std::find_if(rows.begin(), rows.end(), same);
  if (row == rows.end()) row = rows.insert(rows.end(), Row{figure, sentence, {}, {}, {}, {}, {}, {}, {}, {}});
  if (of_paper) {
    row->paper = claim["verdict"];
    row->of_paper = percent(claim, "effect");
    return;
  }
  row->ours = claim["verdict"];
  row->finding = claim.value("finding", "");
  row->effect = percent(claim, "effect");
  row->low = percent(claim, "low");
  row->high = percent(claim, "high");
  if (claim.contains("seeds")) row->seeds = claim["seeds"].get<std::int64_t>();
}

template <class T>
Cell cell_of(const std::optional<T>& value) {
  return value ? Cell(*value) : Cell(std::string());
}

std::string text_of(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return std::to_string(*whole);
  return fmt::format("{:+.1f} %", std::get<double>(cell));
}

}  // namespace

Figure claims_table(const std::vector<Figure>& figures, const std::vector<std::string_view>& ids) {
  constexpr std::string_view kClaims = "claims_";
  std::vector<Row> rows;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    for (const auto& [name, claims] : figures[i].findings.items()) {
      if (!name.starts_with(kClaims)) continue;
      for (const Json& claim : claims) add(claim, name == "claims_paper", std::string(ids[i]), rows);
    }
  }
  Figure table;
  table.columns = {"figure",         "claim",       "paper",        "paper_percent", "ours",
                   "effect_percent", "low_percent", "high_percent", "fewest_seeds",  "finding"};
  for (Row& row : rows) {
    table.rows.push_back({std::move(row.figure), std::move(row.sentence), std::move(row.paper),
                          cell_of(row.of_paper), std::move(row.ours), cell_of(row.effect), cell_of(row.low),
                          cell_of(row.high), cell_of(row.seeds), std::move(row.finding)});
  }
  return table;
}

std::string claims_text(const Figure& table) {
  std::vector<commands::Row> rows = {{"figure", "paper", "", "ours", "", "95 % interval", "seeds"}};
  std::vector<std::string> sentences = {"claim"};
  for (const std::vector<Cell>& row : table.rows) {
    std::vector<std::string> cells;
    for (const Cell& cell : row) cells.push_back(text_of(cell));
    const std::string interval = cells[6].empty() ? "" : cells[6] + " to " + cells[7];
    rows.push_back({cells[0], cells[2], cells[3], cells[4], cells[5], interval, cells[8]});
    sentences.push_back(cells[1] + (cells[9].empty() ? "" : " (" + cells[9] + ")"));
  }
  return "claims of the paper: what its printed figures say, and what our runs say\n" +
         commands::aligned_before(rows, sentences);
}

}  // namespace fomoe::figures
