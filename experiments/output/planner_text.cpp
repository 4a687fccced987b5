#include "experiments/output/planner_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "costmodel/compose/memory_remedy.hpp"
#include "costmodel/compose/warnings.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "experiments/analysis/limits.hpp"
#include "experiments/analysis/sensitivity.hpp"
#include "experiments/cli/equal_loss.hpp"
#include "experiments/output/planner_words.hpp"
#include "experiments/output/simulate_line.hpp"
#include "experiments/planner/decision.hpp"
#include "experiments/planner/rules.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::commands {

namespace {

using planner::Answer;
using planner::Basis;
using planner::Finalist;
using planner::Measure;

class PlannerText {
 public:
  explicit PlannerText(const PlannerAnswer& plan)
      : plan_(plan), answer_(plan.answer), base_(answer_.finalists.front()) {
    for (const Finalist& finalist : answer_.finalists) {
      costs_ = costs_ || !std::isnan(finalist.simulated.cost);
      energies_ = energies_ || !std::isnan(finalist.simulated.energy_kwh);
      perplexities_ = perplexities_ || finalist.perplexity.has_value();
    }
  }

  std::string text() {
    return scope() + head() + '\n' + chosen_table() + '\n' + lines() + '\n' + sensitivities() + methods() +
           dropped() + tried() + differences();
  }

 private:
  /// What the ranking includes and leaves out; empty if there is nothing to tell.
  [[nodiscard]] std::string scope() const {
    const std::string missing = left_out(base_.scenario, /*simulated=*/false, /*failures=*/true);
    std::string text;
    if (!missing.empty())
      text += fmt::format(
          "The closed form, which chose the combinations that were simulated, leaves out {}.\n", missing);
    if (const std::string more = costmodel::more_connections(base_.scenario.platform, base_.scenario.network);
        !more.empty())
      text += "Note: " + more + ".\n";
    if (const std::string shared =
            costmodel::shared_devices(base_.scenario.compute, base_.scenario.site_compute);
        !shared.empty())
      text += "Note: " + shared + ".\n";
    if (base_.scenario.failures && base_.scenario.failures->at_random())
      text += "Times, costs and limits are those of the median run with failures.\n";
    return text;
  }
  [[nodiscard]] bool ranks_by_loss() const {
    return answer_.basis == Basis::equal_loss || answer_.basis == Basis::published;
  }
  [[nodiscard]] const Finalist& at(std::size_t i) const { return answer_.finalists[i]; }
  [[nodiscard]] std::string amount(const Finalist& finalist) const {
    return amount_text(plan_.options.screening.minimise, finalist.value, base_.scenario);
  }
  /// The amount to equal loss: by the centre of what is known, and the least and the largest value of both
  /// laws there.
  [[nodiscard]] std::string equal_loss_amount(const Finalist& finalist) const {
    if (!finalist.equal_loss_range) return amount(finalist);
    const Measure measure = plan_.options.screening.minimise;
    costmodel::EqualLossRange centre = *finalist.equal_loss_range;
    centre.low = centre.centre_low;
    centre.high = centre.centre_high;
    return range_text(centre, [&](double factor) {
      return amount_text(measure, planner::to_equal_loss(finalist.simulated, factor).of(measure),
                         base_.scenario);
    });
  }
  [[nodiscard]] std::string name_of(const Finalist& finalist) const {
    std::string text = fmt::format("{} with K = {}", finalist.method(), finalist.steps_per_round());
    if (finalist.scenario.strategy.method->partial_experts)
      text += fmt::format(", O_e = {}", costmodel::effective_overlap(finalist.scenario));
    return text +
           fmt::format(" on {} site{}", finalist.scenario.sites(), finalist.scenario.sites() == 1 ? "" : "s");
  }
  [[nodiscard]] static const char* measure_name(Measure measure) {
    switch (measure) {
      case Measure::time:
        return "least time";
      case Measure::cost:
        return "lowest cost";
      case Measure::energy:
        return "least energy";
    }
    return "";
  }

  /// If no candidate keeps the limits, shows the least time, cost or energy that is possible.
  std::string nothing_left() {
    if (plan_.least.empty())
      return fmt::format(
          "No configuration is possible: all {} combinations were dropped for the reasons below.\n",
          human_count(static_cast<double>(plan_.screening.candidates)));
    std::string text =
        "No configuration meets all limits. Without limits on time, cost and energy, and regardless of "
        "quality, the best configurations are:\n";
    for (const Least& least : plan_.least) {
      const Finalist& own = least.finalist;
      std::vector<std::string> amounts;
      for (const Measure measure : {Measure::time, Measure::cost, Measure::energy}) {
        const std::string amount = amount_text(measure, own.simulated.of(measure), base_.scenario);
        if (!amount.empty()) amounts.push_back(amount);
      }
      text += fmt::format("{}: {} ({})\n  {}\n", measure_name(least.measure), name_of(own),
                          scenario::joined(amounts), simulate_line(plan_.question, own));
    }
    return text;
  }

  std::string head() {
    if (answer_.chosen.empty()) return nothing_left();
    if (answer_.has_choice()) {
      const Finalist& best = at(answer_.chosen.front());
      std::string text = fmt::format("Choice ({}): {}, {}.", measure_name(plan_.options.screening.minimise),
                                     name_of(best), equal_loss_amount(best));
      if (answer_.basis == Basis::equal_loss)
        text +=
            " This is the amount to reach the loss of data-parallel training. The times and costs in the "
            "table, and limits, are those of the configured runs.";
      if (answer_.basis == Basis::published) return text + by_published_runs(answer_);
      if (answer_.basis == Basis::target)
        text += fmt::format(
            " It is the best candidate whose measured perplexity is at most {:.4g}{}; its perplexity is "
            "{:.4g}.",
            *answer_.target_perplexity,
            plan_.options.screening.limits.perplexity ? "" : ", the baseline's perplexity", *best.perplexity);
      return text +
             " Quality is known only for wire formats that are at least as precise as the scenario's.\n";
    }
    return recommendation() +
           fmt::format("There is no single best configuration: {}.\n", answer_.why_unknown) +
           (answer_.basis == Basis::unknown ? kRisks : "");
  }

  static bool is_few(const Finalist& of) { return static_cast<double>(of.rounds()) < planner::kFewRounds; }
  /// The first row of a frontier, and by how much it exceeds the lowest value.
  std::string recommendation() {
    const Finalist& first = at(answer_.chosen.front());
    double lowest = first.value;
    for (const std::size_t i : answer_.chosen) lowest = std::min(lowest, at(i).value);
    const bool unknown = answer_.basis == Basis::unknown, less = first.value > lowest * (1 + planner::kTie);
    const char* has = is_few(first) ? "; no candidate has" : " with at least";
    return fmt::format(
        "Recommended: {}, {}: {} of those at most {} (--slack) above the lowest{}{}.\n", name_of(first),
        amount(first), unknown ? "it takes the least risk" : "the best perplexity",
        human_percent(plan_.options.slack),
        unknown ? fmt::format("{} {:g} rounds", has, planner::kFewRounds) : "",
        less ? "; the lowest in the table is " + human_percent(1 - lowest / first.value) + " less" : "");
  }

  Row titles() {
    Row row = {"", "method", "K", "rounds", "O_e/M", "wire", "collective", "sites", "time"};
    if (costs_) row.emplace_back("cost");
    if (energies_) row.emplace_back("energy");
    if (ranks_by_loss()) row.emplace_back("to equal loss");
    if (answer_.basis == Basis::published) row.insert(row.end(), {"loss", "P(row 1 less)"});
    if (perplexities_) row.emplace_back("perplexity");
    row.insert(row.end(), {"utilisation", "closed form", "other settings"});
    return row;
  }

  /// The number of rounds, marked if there are so few that nobody has shown what they do to quality.
  std::string rounds_text(const Finalist& finalist) {
    any_few_ = any_few_ || is_few(finalist);
    return std::to_string(finalist.rounds()) + (is_few(finalist) ? "*" : " ");
  }

  /// O_e/M, marked if a site holds fewer experts of a layer than a token uses.
  std::string overlap_text(const Finalist& finalist) {
    const bool fewer = finalist.candidate.quality.fewer_experts;
    any_fewer_ = any_fewer_ || fewer;
    return fmt::format("{}/{}{}", costmodel::effective_overlap(finalist.scenario), finalist.scenario.sites(),
                       fewer ? "^" : "");
  }

  /// The number of sites, or their names if they are some of those that the scenario's platform has.
  [[nodiscard]] std::string sites_text(const Finalist& finalist) const {
    const std::string count = std::to_string(finalist.scenario.sites());
    if (!plan_.space.names_sites || finalist.scenario.sites() >= base_.scenario.sites()) return count;
    std::string names;
    for (const platforms::Site& site : finalist.scenario.platform.sites)
      names += (names.empty() ? "" : "+") + site.name;
    return names;
  }

  Row cells(const std::string& label, const Finalist& finalist) {
    const costmodel::Strategy& strategy = finalist.scenario.strategy;
    const bool partial = strategy.method->partial_experts;
    Row row = {label,
               strategy.method->name,
               std::to_string(finalist.steps_per_round()),
               rounds_text(finalist),
               partial ? overlap_text(finalist) : "all",
               to_string(strategy.wire.type),
               costmodel::has_axis(*strategy.method, "collective") || strategy.method->through_chain
                   ? to_string(strategy.collective)
                   : "",
               sites_text(finalist),
               human_time(finalist.simulated.time_s)};
    if (costs_) row.push_back(amount_text(Measure::cost, finalist.simulated.cost, base_.scenario));
    if (energies_) row.push_back(amount_text(Measure::energy, finalist.simulated.energy_kwh, base_.scenario));
    if (ranks_by_loss()) row.push_back(finalist.equal_loss_factor ? equal_loss_amount(finalist) : "unknown");
    if (answer_.basis == Basis::published) {
      const bool known = finalist.published && finalist.published->level.known();
      row.push_back(!known ? "unknown"
                           : fmt::format("{:+.2f} ± {:.2f} %", finalist.published->level.points,
                                         finalist.published->level.half));
      row.push_back(finalist.first_needs_less ? fmt::format("{:.2f}", *finalist.first_needs_less) : "");
    }
    if (perplexities_)
      row.push_back(finalist.perplexity ? fmt::format("{:.4g}", *finalist.perplexity) : "unknown");
    const double off = finalist.closed_form.time_s / finalist.simulated.time_s - 1;
    row.insert(row.end(), {human_percent(finalist.compute_utilization),
                           !std::isfinite(off)    ? ""
                           : std::abs(off) < 5e-4 ? "same"
                                                  : fmt::format("{:+.2g} %", off * 100),
                           "  " + details(plan_, finalist)});
    return row;
  }

  std::string chosen_table() {
    std::vector<Row> rows = {titles()};
    for (std::size_t i = 0; i < answer_.chosen.size(); ++i)
      rows.push_back(cells(std::to_string(i + 1), at(answer_.chosen[i])));
    rows.push_back(cells("baseline", base_));
    std::string text = aligned(rows);
    if (answer_.riskier > 0) {
      // The line goes before the last rows: those that are riskier, and the baseline.
      std::size_t at = text.size();
      for (std::size_t i = 0; i < answer_.riskier + 1; ++i) at = text.rfind('\n', at - 2) + 1;
      text.insert(at, answer_.basis == Basis::published
                          ? "not covered by published runs; less time or cost:\n"
                          : "more risk, less time or cost:\n");
    }
    const std::string fits = costmodel::remedy_text(costmodel::memory_remedy(base_.scenario));
    if (!base_.problem.empty())
      text += fmt::format("The baseline {}{}{}.\n", base_.problem, fits.empty() ? "" : "; ", fits);
    text += "baseline: the unchanged scenario; closed form: difference of its time from the simulated time\n";
    if (any_few_)
      text += fmt::format(
          "*: fewer than {} synchronisations in the whole run. Few published runs have so few; in runs of a "
          "small model with 6 rounds, the loss was 20 to 27 % higher.\n",
          planner::kFewRounds);
    if (any_fewer_)
      text += "^: a site holds fewer experts than a token uses, and trains another model with fewer FLOPs.\n";
    return text;
  }

  std::string lines() {
    std::string text;
    for (std::size_t i = 0; i < answer_.chosen.size(); ++i) {
      if (answer_.has_choice() && i > 0) break;
      text += fmt::format("{}{}\n", answer_.has_choice() ? "" : fmt::format("{}: ", i + 1),
                          simulate_line(plan_.question, at(answer_.chosen[i])));
    }
    return text;
  }

  std::string sensitivities() {
    if (answer_.chosen.empty()) return "";
    const Finalist& first = at(answer_.chosen.front());
    const std::string text = sensitivity_text(brief_sensitivity(first.scenario), first.without_failures_s);
    return text.empty() ? "" : (answer_.has_choice() ? "For the choice: " : "For row 1: ") + text;
  }

  [[nodiscard]] std::string place(std::size_t finalist) const {
    const auto found = std::find(answer_.chosen.begin(), answer_.chosen.end(), finalist);
    if (found == answer_.chosen.end()) return name_of(at(finalist));
    return answer_.has_choice() && found == answer_.chosen.begin()
               ? "the choice"
               : fmt::format("row {}", found - answer_.chosen.begin() + 1);
  }

  [[nodiscard]] std::string on_frontier(std::size_t finalist) const {
    const auto found = std::find(answer_.chosen.begin(), answer_.chosen.end(), finalist);
    return found == answer_.chosen.end() ? "more risk than the rows, one of which takes about as long and "
                                           "another one costs about as much"
                                         : place(finalist);
  }

  std::string methods() {
    std::vector<Row> rows;
    std::vector<std::string> reasons;
    for (const planner::MethodBest& best : answer_.methods) {
      const Finalist& own = at(best.finalist);
      std::string why;
      if (!best.loses_to) {
        why = answer_.has_choice() ? "the choice" : on_frontier(best.finalist);
      } else if (answer_.basis == Basis::published && !own.equal_loss_factor) {
        why = "published runs do not cover it: " + own.quality_reason;
      } else {
        const Finalist& other = at(*best.loses_to);
        why = fmt::format(
            "{} {}",
            own.value > other.value * (1 + 1e-6) ? ratio_text(own.value / other.value) : "as much as",
            place(*best.loses_to));
        if (answer_.basis == Basis::unknown) why += ", which has no more risk by the order of the rows";
        if (answer_.basis == Basis::target || answer_.basis == Basis::perplexity)
          why += own.perplexity ? fmt::format("; its perplexity is {:.4g}", *own.perplexity)
                                : "; its perplexity is unknown";
        if (own.exposed_share > 0.05)
          why += fmt::format("; it waits for the network {} of the time", human_percent(own.exposed_share));
      }
      rows.push_back({own.method(), amount(own)});
      reasons.push_back(name_of(own).substr(std::string(own.method()).size() + 1) + ": " + why);
    }
    return rows.empty() ? "" : "Best configuration of each method:\n" + listed(rows, reasons) + '\n';
  }

  /// Aligns the columns and puts one sentence behind each row.
  static std::string listed(const std::vector<Row>& rows, const std::vector<std::string>& sentences) {
    std::string columns = aligned(rows, "  "), text;
    for (const std::string& sentence : sentences) {
      const std::size_t end = columns.find('\n');
      text += columns.substr(0, end) + "  " + sentence + '\n';
      columns.erase(0, end + 1);
    }
    return text;
  }

  std::string dropped() {
    std::vector<Row> rows;
    std::vector<std::string> reasons;
    const auto add = [&](std::uint64_t count, const std::string& reason) {
      rows.push_back({"", human_count(static_cast<double>(count))});
      reasons.push_back(reason);
    };
    const planner::Screening& screening = plan_.screening;
    for (const auto& [reason, entry] : screening.dropped)
      add(entry.count,
          entry.example.empty() ? reason : fmt::format("impossible, for example {}", entry.example));
    if (!screening.doubtful.empty())
      add(screening.doubtful.offered(),
          "exceed a limit by the closed form, which overestimates some times if sites differ; the best of "
          "these "
          "were simulated");
    std::map<std::string, std::uint64_t> simulated;
    for (std::size_t i = 1; i < answer_.finalists.size(); ++i) {
      if (!at(i).problem.empty()) ++simulated[at(i).problem];
    }
    for (const auto& [reason, count] : simulated) add(count, "simulated: " + reason);
    return rows.empty() ? "" : "Dropped:\n" + listed(rows, reasons) + '\n';
  }

  std::string tried() {
    std::string text = fmt::format(
        "Evaluated {} combinations with the closed form and simulated {}{}:\n",
        human_count(static_cast<double>(plan_.screening.candidates)), answer_.simulated,
        answer_.with_collectives
            ? ", each with every collective, because sites differ and some closed forms then use the "
              "slowest link for all of them"
            : "");
    for (const std::string& line : plan_.space.tried) text += "  " + line + '\n';
    return text;
  }

  std::string differences() {
    double lowest = 0, highest = 0;
    for (const Finalist& finalist : answer_.finalists) {
      if (!(finalist.simulated.time_s > 0)) continue;
      const double off = finalist.closed_form.time_s / finalist.simulated.time_s - 1;
      lowest = std::min(lowest, off);
      highest = std::max(highest, off);
    }
    // A difference below rounding error does not count as a difference.
    if (highest - lowest < 1e-9) return "The closed form's times equal the simulated times.\n";
    return fmt::format(
        "The closed form's times were between {:.3g} % below and {:.3g} % above the simulated times.\n",
        std::abs(lowest) * 100, highest * 100);
  }

  const PlannerAnswer& plan_;
  const Answer& answer_;
  const Finalist& base_;
  bool costs_ = false, energies_ = false, perplexities_ = false, any_few_ = false, any_fewer_ = false;
};

}  // namespace

std::string planner_text(const PlannerAnswer& plan) { return PlannerText(plan).text(); }

}  // namespace fomoe::commands
