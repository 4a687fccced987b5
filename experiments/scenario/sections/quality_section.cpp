#include "experiments/files/quality_csv.hpp"
#include "experiments/scenario/sections/sections.hpp"
#include "experiments/scenario/toml/table_reader.hpp"

namespace fomoe::scenario {

std::optional<costmodel::QualityModel> read_quality(const Document& document) {
  const toml::table* section = find_table(document, "quality");
  if (section == nullptr) return std::nullopt;
  const TableReader table(document, scenario_keys(), "quality", section);
  if (table.has("model") && table.has("file"))
    table.refuse("file", "both file and model", "only one of them");
  if (table.has("file")) return read_quality_csv(table.file("file"));
  if (!table.has("model")) return std::nullopt;
  if (table.text("model") == "paper-table") return paper_table();
  return costmodel::DilocoScalingLaw{};
}

}  // namespace fomoe::scenario
