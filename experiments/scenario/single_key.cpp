#include "experiments/scenario/single_key.hpp"

#include "experiments/scenario/toml/document.hpp"
#include "experiments/scenario/toml/table_reader.hpp"

namespace fomoe::scenario {

bool is_plain_number(Kind kind) {
  return kind == Kind::count || kind == Kind::share || kind == Kind::factor || kind == Kind::multiple;
}

bool is_number(Kind kind) { return is_plain_number(kind) || quantity_of(kind); }

const char* si_unit(Kind kind) {
  const std::optional<Quantity> quantity = quantity_of(kind);
  constexpr const char* kUnits[] = {"Bps", "s", "B", "FLOPS", "W"};  // in the order of Quantity
  return quantity ? kUnits[static_cast<std::size_t>(*quantity)] : "";
}

SingleKey read_single_key(const std::string& assignment) {
  Document document;
  document.override_key(assignment);
  refuse_unknown_tables(document, scenario_keys(), {"site", "path"});
  const std::string dotted_name = assignment.substr(0, assignment.find('='));
  if (is_table(scenario_keys(), dotted_name)) (void)find_table(document, dotted_name);  // refuses the value
  const ElementKey element = element_key(dotted_name);
  const auto [table, name] =
      element.table.empty() ? table_and_name(dotted_name) : std::pair{element.table, element.name};
  const toml::table* found = !element.table.empty() ? find_tables(document, table).front()
                             : table.empty()        ? &document.root()
                                                    : find_table(document, table);
  const TableReader reader(
      document, table == "site" ? std::span<const Key>(own_site_keys()) : scenario_keys(), table, found);

  SingleKey single;
  single.key = find_key(dotted_name);  // not nullptr: the reader has refused unknown names
  const Kind kind = single.key->kind;
  if (is_number(kind)) {
    single.number = reader.number(name);
  } else if (kind == Kind::boolean) {
    single.word = reader.boolean(name) ? "true" : "false";
  } else if (kind == Kind::text || kind == Kind::choice) {
    single.word = reader.text(name);
  } else {
    // The value is checked when the whole scenario is read.
    single.word = assignment.substr(assignment.find('=') + 1);
  }
  return single;
}

}  // namespace fomoe::scenario
