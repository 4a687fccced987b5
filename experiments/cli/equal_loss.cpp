#include "experiments/cli/equal_loss.hpp"

#include <fmt/format.h>

#include <cmath>

#include "costmodel/value/goodput.hpp"
#include "experiments/text/human.hpp"

namespace fomoe::commands {

std::string signed_points(double points) { return fmt::format("{:+.2f} %", points); }

std::string points_text(const costmodel::LossEstimate& estimate) {
  return fmt::format("{} (80 % interval {:+.2f} to {}; {} studies)", signed_points(estimate.points),
                     estimate.low(), signed_points(estimate.high()), estimate.studies);
}

std::string loss_text(const costmodel::RunReport& report) {
  if (!report.quality || !report.quality->published) return "";
  const costmodel::LossEstimate& level = report.quality->published->level;
  if (!level.known()) return "unknown";
  return fmt::format("{:+.2f} ± {:.2f} %", level.points, level.half);
}

std::string range_text(const costmodel::EqualLossRange& range,
                       const std::function<std::string(double)>& at_factor) {
  const auto text = [&](double factor) {
    return std::isfinite(factor) ? at_factor(factor) : std::string("unlimited");
  };
  const auto both = [&](double low, double high) {
    const std::string first = text(low), second = text(high);
    return first == second ? first : first + " to " + second;
  };
  std::string found = both(range.centre_low, range.centre_high);
  if (range.low < range.centre_low || range.high > range.centre_high)
    found += fmt::format(" (80 % interval {})", both(range.low, range.high));
  return found;
}

std::string time_to_equal_loss(const costmodel::RunReport& report) {
  if (!report.quality) return "";
  const double whole_s = costmodel::amounts_of(report).wall_clock_s;
  const auto time = [&](double factor) {
    return std::isfinite(whole_s) ? human_time(factor * whole_s) : std::string("never");
  };
  if (report.quality->equal_loss_range) return range_text(*report.quality->equal_loss_range, time);
  return report.quality->equal_loss_factor ? time(*report.quality->equal_loss_factor) : "";
}

}  // namespace fomoe::commands
