// The interval of an answer's time and cost: what is uncertain, part by part, and all of it together.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "costmodel/formula/uncertainty.hpp"
#include "costmodel/inputs/scenario.hpp"
#include "costmodel/report/run_report.hpp"
#include "experiments/json/json.hpp"

namespace fomoe::commands {

/// By how much the wall clock may be shorter or longer because of one part.
struct IntervalPart {
  std::string what;  // "synchronisation", "computation", "failures", "measured step time", …
  double below_s = 0, above_s = 0;
  std::string how;            // origin of these numbers
  double computed_share = 0;  // of these seconds, in which sites compute and do not wait
};

/// An interval that about 95 % of such runs would end in. Each part has its own error:
///
///   synchronisation  what the run takes beside computation, with the p95 error of real runs in like
///                    conditions, and with the range of several simulations; measured = predicted ÷ (1 +
///                    error)
///   computation      the spread of measured steps; of an assumed MFU the range that comparable published
///                    runs reached; a step time that is given is taken as exact
///   failures         from the failure-free wall clock to the p95 of the finish times, around their median
///
/// The parts are independent: deviations of one side are added in quadrature. If the scenario lies outside of
/// the conditions of the real runs, what it takes beside computation is assumed to be right within a factor
/// of 2, as long as this stays within 5 % of the wall clock; otherwise there is no interval.
struct AnswerInterval {
  double low_s = 0, high_s = 0;
  std::optional<double> cost_low, cost_high;  // in the scenario's currency, if it has prices
  std::vector<IntervalPart> parts;
  std::string withheld;  // why there is no interval; empty if there is one
};

/// `inputs`: the uncertainties of inputs with a known spread, as known_spread() gives them.
AnswerInterval interval_of(const costmodel::RunReport& report, const costmodel::Scenario& scenario,
                           const std::vector<costmodel::Uncertainty>& inputs);

/// For people: the interval, and a line for each part.
std::string interval_text(const AnswerInterval& interval, const costmodel::Scenario& scenario);
scenario::Json interval_json(const AnswerInterval& interval);

}  // namespace fomoe::commands
