#include "experiments/results/possible_numbers.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>

#include "costmodel/report/report_fields.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::scenario {
namespace {

// Sums of times that were measured or simulated may differ by this share of the wall clock.
constexpr double kRounding = 1e-6;

/// `least` is the smallest number that is possible, but for rounding.
void check(const std::string& name, double number, double rounding) {
  if (!std::isfinite(number)) {
    throw InputError(
        name, fmt::format("{} as the result", number),
        "a scenario whose times and bytes are finite numbers; a share, a rate or an efficiency in "
        "it is too small, or a size, a time or a factor too large",
        "the values of experiments/scenarios/two-sites.toml");
  }
  if (number < -rounding)
    throw std::logic_error(
        fmt::format("{} is {}, which cannot be: this is a mistake in fomoe", name, number));
}

template <class Record, std::size_t N>
void check_fields(const Record& record, const costmodel::ReportField<Record> (&fields)[N],
                  const std::string& prefix, double rounding_s) {
  for (const auto& field : fields) {
    if (const auto* member = std::get_if<double Record::*>(&field.member)) {
      const bool time = field.name.ends_with("_s");
      check(prefix + std::string(field.name), record.*(*member), time ? rounding_s : kRounding);
    }
  }
}

}  // namespace

const costmodel::RunReport& possible(const costmodel::RunReport& report) {
  const double rounding_s =
      std::isfinite(report.wall_clock_s) ? kRounding * std::abs(report.wall_clock_s) : kRounding;
  check_fields(report, costmodel::kReportFields, "", rounding_s);
  check_fields(report.round, costmodel::kRoundFields, "round.", rounding_s);
  for (const costmodel::SiteReport& site : report.sites)
    check_fields(site, costmodel::kSiteFields, "sites.", rounding_s);
  check_fields(report.bottleneck, costmodel::kBottleneckFields, "bottleneck.", rounding_s);
  for (const double seconds : report.round_durations_s) check("round_durations_s", seconds, rounding_s);
  for (const costmodel::CriticalStep& step : report.critical_path)
    check("critical_path.seconds", step.seconds, rounding_s);
  return report;
}

}  // namespace fomoe::scenario
