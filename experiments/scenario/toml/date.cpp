#include "experiments/scenario/toml/date.hpp"

#include <chrono>
#include <cstdio>

namespace fomoe::scenario {

std::string date(const TableReader& table, std::string_view key) {
  const std::string text = table.text(key);
  int year = 0, end = 0;
  unsigned month = 0, day = 0;
  const bool read = std::sscanf(text.c_str(), "%4d-%2u-%2u%n", &year, &month, &day, &end) == 3;
  const std::chrono::year_month_day found{std::chrono::year(year), std::chrono::month(month),
                                          std::chrono::day(day)};
  if (read && text.size() == 10 && static_cast<std::size_t>(end) == text.size() && found.ok()) return text;
  table.refuse(key, '"' + text + '"', "a day of the calendar as year-month-day");
}

}  // namespace fomoe::scenario
