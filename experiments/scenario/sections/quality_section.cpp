#include <fmt/format.h>

#include "experiments/files/published/published_quality.hpp"
#include "experiments/files/quality_csv.hpp"
#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/toml/table_reader.hpp"

namespace fomoe::scenario {

std::optional<costmodel::QualityModel> read_quality(const Document& document) {
  const toml::table* section = find_table(document, "quality");
  if (section == nullptr) return std::nullopt;
  const TableReader table(document, scenario_keys(), "quality", section);
  table.only_one_of("file", "model");
  if (table.has("equal_loss_factor")) {
    for (const char* key : {"model", "file", "interpolate", "mixtures"})
      table.only_one_of("equal_loss_factor", key);
    return costmodel::AssumedPenalty{table.number("equal_loss_factor")};
  }
  const bool published = table.has("model") && table.text("model") == "published";
  if (table.has("mixtures") && !published) {
    const std::string place = table.place("mixtures");
    fail(place, "quality.mixtures",
         fmt::format("\"{}\" without model = \"published\"", table.text("mixtures")),
         "mixtures only with model = \"published\"",
         place.starts_with("--set") ? "--set quality.model=published" : "model = \"published\"");
  }
  const bool from_table = table.has("file") || (table.has("model") && table.text("model") == "paper-table");
  if (table.boolean("interpolate") && !from_table)
    table.refuse("interpolate", "true without a table",
                 "interpolate only with file, or with model = \"paper-table\"");
  if (from_table) {
    costmodel::QualityTable rows = table.has("file") ? read_quality_csv(table.file("file")) : paper_table();
    rows.interpolate = table.boolean("interpolate");
    return rows;
  }
  if (published) return costmodel::PublishedQuality{published_losses(), table.text("mixtures") == "refuse"};
  if (!table.has("model")) return std::nullopt;
  return costmodel::DilocoScalingLaw{};
}

}  // namespace fomoe::scenario
