#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "costmodel/counts/memory.hpp"
#include "experiments/analysis/uncertainty.hpp"
#include "experiments/cli/equal_loss.hpp"
#include "experiments/cli/execute.hpp"
#include "experiments/report/charts.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/sections.hpp"
#include "experiments/report/settings.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::report {

using commands::human_bytes;
using commands::human_count;
using commands::human_money;
using commands::human_percent;
using commands::human_time;
using commands::Row;

namespace {

constexpr std::size_t kMostRunRows = 64, kFewRows = 8;

/// A text of the scenario; empty if the result does not have it.
std::string of_scenario(const Run& run, const char* table_name, const char* key) {
  if (!run.scenario.is_object() || !run.scenario.contains(table_name)) return "";
  const Json& section = run.scenario[table_name];
  return section.is_object() && section.contains(key) && section[key].is_string()
             ? section[key].get<std::string>()
             : "";
}

/// The answer in one sentence, with its cost, and how sure it is.
std::string lead(const Run& run) {
  const costmodel::RunReport report = median_of(run).figures;
  if (std::isinf(report.wall_clock_s))
    return paragraph("More than half of the runs with failures never end; without failures, training takes " +
                     human_time(run.figures.wall_clock_s) + '.');
  std::string text = "Training takes " + human_time(report.wall_clock_s);
  const std::string money = commands::money_text(report);
  if (!money.empty()) {
    text += " and costs " + money;
    if (!run.median_s && report.cost->cost_total > 0 && report.cost->egress_cost > 0)
      text += fmt::format(" ({} of it for egress)",
                          human_percent(report.cost->egress_cost / report.cost->cost_total));
  }
  if (run.median_s)
    text += fmt::format(" in the median run with failures; without failures, {}{}",
                        human_time(run.figures.wall_clock_s),
                        money.empty() ? "" : " and " + commands::money_text(run.figures));
  text += report.executor == "measured" ? ", measured." : ".";
  if (!run.interval)
    return paragraph(text + (run.no_interval.empty()
                                 ? ""
                                 : fmt::format(" No interval is given, because {}.", run.no_interval)));
  text += fmt::format(" 95 % of such runs would take {} to {}", human_time(run.interval->low),
                      human_time(run.interval->high));
  return paragraph(text + ".");
}

std::string answer(const Run& run) {
  const costmodel::RunReport& report = run.figures;
  const char* without = run.median_s ? " without failures" : "";
  std::vector<std::pair<std::string, std::string>> list = {
      {std::string("wall clock") + without, human_time(report.wall_clock_s)},
      {"compute utilisation", human_percent(report.compute_utilization)},
      {"limited by", report.bottleneck.limited_by}};
  const std::string money = commands::money_text(report);
  list.emplace_back(std::string("cost") + without, money.empty() ? "no prices given" : money);
  if (report.cost && report.cost->energy_kwh)
    list.emplace_back(std::string("energy") + without, fmt::format("{:.4g} kWh", *report.cost->energy_kwh));
  if (report.quality && report.quality->published) {
    list.emplace_back("loss against data-parallel training", commands::loss_text(report));
  } else if (report.quality) {
    list.emplace_back("perplexity", commands::perplexity_text(report));
  }
  list.emplace_back("bytes sent per site and round", human_bytes(report.bytes_sent_per_site_per_round));
  list.emplace_back("throughput", human_count(report.tokens_per_s) + " tokens/s");
  std::string html;
  for (const std::string& line : report.warnings) html += warning(line);
  if (!report.memory_problem.empty())
    html += warning("This scenario cannot run as configured: it " + report.memory_problem);
  html += lead(run) + changed_factors(report.provenance) + figures(list);
  std::string sentence = "The run " + commands::waiting_text(report) + '.';
  if (report.wall_clock_interval_s)
    sentence += fmt::format(
        " The 95 % confidence interval of the wall clock is {} to {}, because rounds differ and only some "
        "were executed.",
        human_time(report.wall_clock_interval_s->low), human_time(report.wall_clock_interval_s->high));
  html += paragraph(sentence);
  if (report.quality && report.quality->published) {
    const costmodel::LossEstimate& level = report.quality->published->level;
    html += paragraph(level.known() ? "By published runs, the loss is " + commands::points_text(level) +
                                          " against tuned data-parallel training of the same model."
                                    : "The loss against data-parallel training is unknown, because published "
                                      "runs do not cover it: " +
                                          report.quality->reason);
  } else if (report.quality && !report.quality->known) {
    html += paragraph(
        "The perplexity is unknown, because the scenario is outside the range of the quality model: " +
        report.quality->reason);
  }
  return html;
}

std::string time_table(const costmodel::RunReport& report) {
  const auto row = [&](const char* name, double per_round_s) {
    return Row{name, human_time(per_round_s * static_cast<double>(report.round.count)),
               human_percent(per_round_s / report.round.duration_s), human_time(per_round_s)};
  };
  std::vector<Row> parts = {
      row("wall clock", report.round.duration_s), row("compute", report.round.compute_s),
      row("exposed communication", report.round.exposed_communication_s), row("idle", report.round.idle_s)};
  if (report.round.upkeep_s > 0) parts.push_back(row("validation, checkpoints, logs", report.round.upkeep_s));
  return table("Means over sites and rounds",
               {{"part"}, {"in the run", true}, {"share", true}, {"per round", true}}, parts);
}

std::string waits(const costmodel::RunReport& report) {
  if (report.critical_path.empty()) return "";
  double all_s = 0;  // of this round, which may be longer than the mean one
  for (const costmodel::CriticalStep& step : report.critical_path) all_s += step.seconds;
  std::vector<Row> rows;
  for (const costmodel::CriticalStep& step : report.critical_path) {
    if (rows.size() == kMostRunRows) break;
    rows.push_back({step.what, to_string(step.activity), step.site, human_time(step.seconds),
                    human_percent(all_s > 0 ? step.seconds / all_s : 0)});
  }
  const std::string what = "Critical path of a round, in time order";
  const std::string html =
      table(what, {{"operation"}, {"kind"}, {"site"}, {"duration", true}, {"share", true}}, rows);
  return rows.size() > kFewRows ? folded(what, html) : html;
}

std::string sites(const costmodel::RunReport& report) {
  const auto rounds = static_cast<double>(report.round.count);
  std::vector<Row> rows;
  for (const costmodel::SiteReport& site : report.sites) {
    if (rows.size() == kMostRunRows) break;
    rows.push_back({site.name, human_bytes(site.bytes_sent / rounds),
                    human_bytes(site.bytes_received / rounds), human_time(site.compute_s),
                    human_time(site.exposed_communication_s), human_time(site.idle_s),
                    human_bytes(site.memory_bytes)});
  }
  return table(rows.size() < report.sites.size()
                   ? fmt::format("Values in the mean round: the first {} of {} sites", rows.size(),
                                 report.sites.size())
                   : "Values in the mean round",
               {{"site"},
                {"sent", true},
                {"received", true},
                {"compute", true},
                {"exposed", true},
                {"idle", true},
                {"memory", true}},
               rows);
}

std::string cost_section(const costmodel::RunReport& report) {
  if (!report.cost || report.cost->currency.empty()) return "";
  const costmodel::Cost& cost = *report.cost;
  const auto row = [&](const char* name, double amount) {
    return Row{name, human_money(amount, ""),
               cost.cost_total > 0 ? human_percent(amount / cost.cost_total) : ""};
  };
  std::vector<Row> rows = {row("total", cost.cost_total), row("GPUs", cost.gpu_cost),
                           row("egress", cost.egress_cost), row("ports", cost.port_cost),
                           row("electricity", cost.energy_cost)};
  if (cost.store_cost != 0) rows.push_back(row("store", cost.store_cost));
  return heading(3, "Cost") + table(cost.as_of.empty() ? "Prices without a date" : "Prices of " + cost.as_of,
                                    {{"part"}, {cost.currency, true}, {"share", true}}, rows);
}

/// The range of the wall clock that follows from the known uncertainty of the inputs.
std::string uncertainty(const Run& run) {
  std::vector<Row> rows;
  for (const costmodel::Uncertainty& input : run.uncertainty)
    rows.push_back({input.input, commands::input_text(input.low, input.unit),
                    commands::input_text(input.high, input.unit), human_time(input.wall_clock_low_s),
                    human_time(input.wall_clock_high_s), fmt::format("{} ({})", input.how, input.executor)});
  const costmodel::Interval95 all = costmodel::in_quadrature(run.uncertainty, run.figures.wall_clock_s);
  rows.push_back({"all inputs, in quadrature", "", "", human_time(all.low), human_time(all.high), ""});
  return table("95 % range of each input, and the resulting range of the wall clock",
               {{"input"}, {"from", true}, {"to", true}, {"wall clock from", true}, {"to", true}, {"source"}},
               rows);
}

std::string envelope(const Json& envelope) {
  if (envelope.is_null()) return "";
  std::string html = heading(3, "Conditions of the runs that predictions were compared with");
  if (envelope.is_object()) return html + settings("", envelope);
  if (envelope.empty())
    return html +
           paragraph("The scenario is inside the ranges in which predictions were compared with real runs.");
  std::vector<std::string> texts;
  for (const Json& entry : envelope) texts.push_back(value_text("", entry));
  return html +
         paragraph("The scenario is outside the ranges in which predictions were compared with real runs:") +
         bullets(texts);
}

}  // namespace

std::string figures(const std::vector<std::pair<std::string, std::string>>& values) {
  std::string html = "<dl class=\"figures\">\n";
  for (const auto& [name, value] : values)
    html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), escaped(value));
  return html + "</dl>\n";
}

std::string answer_of(const Run& run) {
  const std::string method = of_scenario(run, "strategy", "method"),
                    model = of_scenario(run, "model", "name");
  return fmt::format("{}{} on {} site{}: {}, {}", method.empty() ? run.name : method,
                     model.empty() ? "" : " with model " + model, run.figures.sites.size(),
                     run.figures.sites.size() == 1 ? "" : "s",
                     run.median_s && std::isinf(*run.median_s)
                         ? "never ends"
                         : human_time(median_of(run).figures.wall_clock_s),
                     run.figures.executor + (run.median_s ? ", median run with failures" : ""));
}

std::string run_section(const Run& run) {
  const costmodel::RunReport& report = run.figures;
  std::string html = answer(run);
  html += heading(3, "Where the time goes") + time_table(report);
  if (run.round) {
    html += heading(3, "Timeline of a round") + chart(round_chart(*run.round));
  } else if (report.executor != "closed-form") {  // the closed form treats all sites alike
    html += heading(3, "The mean round of each site") + chart(sites_chart(report));
  }
  html += waits(report);
  const bool sends = std::any_of(run.sent_bytes.begin(), run.sent_bytes.end(),
                                 [](const auto& of_class) { return of_class.second > 0; });
  if (sends) html += heading(3, "What a site sends in a round") + chart(bytes_chart(run));
  html += beside({heading(3, "Sites") + sites(report), cost_section(report)});
  if (!run.bandwidth_curve.empty())
    html += heading(3, "Faster and slower links") + chart(bandwidth_chart(run));
  if (!run.sensitivity.inputs.empty())
    html += heading(3, "If an input is 10 % smaller or larger") + chart(sensitivity_chart(run.sensitivity));
  if (!run.uncertainty.empty()) html += heading(3, "Uncertainty") + uncertainty(run);
  if (!run.goodput.is_null()) html += heading(3, "With failures") + settings("goodput", run.goodput);
  if (!run.replicas.is_null()) html += heading(3, "Several seeds") + settings("replicas", run.replicas);
  html += envelope(run.validation_envelope);
  if (!report.notes.empty()) html += heading(3, "Notes") + bullets(report.notes);
  return html + inputs_section({run.scenario, report.provenance});
}

/// Whether all known scenarios train the same model on the same number of tokens.
static bool same_question(const std::vector<Run>& runs) {
  for (const char* key : {"model", "workload"}) {
    const auto differs = [&](const Run& run) {
      const Json& first = runs.front().scenario;
      return first.is_object() && run.scenario.is_object() && first.contains(key) &&
             run.scenario.contains(key) && first[key] != run.scenario[key];
    };
    if (std::any_of(runs.begin(), runs.end(), differs)) return false;
  }
  return true;
}

static bool has_interval(const Run& run) { return run.interval.has_value(); }

/// Explains the column with intervals; empty if no result has one.
static std::string about_intervals(const std::vector<Run>& runs) {
  if (std::none_of(runs.begin(), runs.end(), has_interval)) return "";
  std::string text = "95 % of such runs would take a time in the interval of the column \"95 % interval\".";
  const auto without =
      runs.size() - static_cast<std::size_t>(std::count_if(runs.begin(), runs.end(), has_interval));
  if (without > 0)
    text += fmt::format(
        " {} of {} results have none: they lie outside of the conditions of the real runs that were "
        "compared, or warn of their inputs.",
        without, runs.size());
  return paragraph(text);
}

/// " The next, fomoe K=64, takes 0.9 % longer."; empty if two results are equal.
static std::string lead_of(const std::vector<Run>& runs, const Run& fastest) {
  const Run* next = nullptr;
  for (const Run& run : runs) {
    if (&run != &fastest && (next == nullptr || run.figures.wall_clock_s < next->figures.wall_clock_s))
      next = &run;
  }
  if (std::isinf(next->figures.wall_clock_s))
    return fmt::format(" The next, {}, never ends in more than half of the runs with failures.", next->name);
  const double longer = next->figures.wall_clock_s / fastest.figures.wall_clock_s - 1;
  return fmt::format(" The next, {}, takes {}.", next->name,
                     longer < 5e-4 ? "as long" : human_percent(longer) + " longer");
}

/// The result with the least cost, and the one with the most.
static std::string cost_range(const std::vector<Run>& runs, const Run& fastest) {
  const auto priced = [](const Run& run) { return run.figures.cost && !run.figures.cost->currency.empty(); };
  const auto [least, most] = std::minmax_element(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    return a.figures.cost && b.figures.cost && a.figures.cost->cost_total < b.figures.cost->cost_total;
  });
  if (!std::all_of(runs.begin(), runs.end(), priced) ||
      least->figures.cost->currency != most->figures.cost->currency ||
      std::isinf(most->figures.cost->cost_total))
    return "";
  const double saved = 1 - least->figures.cost->cost_total / most->figures.cost->cost_total;
  return fmt::format(
      " {} with {}{}.",
      &*least == &fastest ? least->name + " is also the cheapest," : "The cheapest is " + least->name + ',',
      commands::money_text(least->figures),
      saved < 5e-4 ? ""
                   : fmt::format(", {} less than {} ({})", human_percent(saved), most->name,
                                 commands::money_text(most->figures)));
}

std::string comparison_section(const std::vector<Run>& given) {
  std::vector<Run> runs;
  for (const Run& run : given) runs.push_back(median_of(run));
  const bool failures = std::any_of(runs.begin(), runs.end(), [](const Run& run) { return run.median_s; });
  const bool intervals = std::any_of(runs.begin(), runs.end(), has_interval);
  const std::string& executor = runs.front().figures.executor;
  const bool same_executor =
      std::all_of(runs.begin(), runs.end(), [&](const Run& run) { return run.figures.executor == executor; });
  std::vector<Row> rows;
  for (const Run& run : runs) {
    const costmodel::RunReport& report = run.figures;
    const std::string money = commands::money_text(report), perplexity = commands::perplexity_text(report);
    const std::string interval = has_interval(run) ? fmt::format("{} to {}", human_time(run.interval->low),
                                                                 human_time(run.interval->high))
                                 : intervals       ? "unknown"
                                                   : "";
    rows.push_back(
        {run.name, std::isinf(report.wall_clock_s) ? "never ends" : human_time(report.wall_clock_s), money,
         perplexity, human_percent(report.compute_utilization),
         human_percent(report.round.exposed_communication_s / report.round.duration_s),
         human_bytes(report.bytes_sent_per_site_per_round), interval, same_executor ? "" : report.executor});
  }
  const auto fastest = std::min_element(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    return a.figures.wall_clock_s < b.figures.wall_clock_s;
  });
  std::vector<Run> ending = runs;
  std::erase_if(ending, [](const Run& run) { return std::isinf(run.figures.wall_clock_s); });
  return paragraph(fmt::format("The fastest of {} results is {} ({}). It {}.{}{}", runs.size(), fastest->name,
                               answer_of(*fastest), commands::waiting_text(fastest->figures),
                               lead_of(runs, *fastest), cost_range(runs, *fastest))) +
         (std::all_of(runs.begin(), runs.end(),
                      [&](const Run& run) {
                        return changed_factors(run.figures.provenance) ==
                               changed_factors(runs.front().figures.provenance);
                      })
              ? changed_factors(runs.front().figures.provenance)
              : "") +
         about_intervals(runs) +
         (failures ? paragraph("Wall clocks and costs are those of the median run with failures, where "
                               "results have failures; the other columns and the components leave failures "
                               "out.")
                   : "") +
         (same_question(runs) ? ""
                              : paragraph("These results do not train the same model on the same workload: "
                                          "the fastest result is not necessarily the best.")) +
         table(same_executor ? "All results; executor: " + executor : "All results",
               {{"result"},
                {"wall clock", true},
                {"cost", true},
                {"perplexity", true},
                {"utilisation", true},
                {"waits for the network", true},
                {"sent per site and round", true},
                {"95 % interval", true},
                {"executor"}},
               rows) +
         heading(3, "Where the time goes") + chart(times_chart(given)) +
         (ending.empty()
              ? ""
              : heading(3, "Time against cost: the Pareto frontier") + chart(runs_frontier_chart(ending)));
}

}  // namespace fomoe::report
