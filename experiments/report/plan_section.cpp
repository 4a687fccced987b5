#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "experiments/report/charts.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/sections.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/suggest.hpp"

namespace fomoe::report {

using commands::human_money;
using commands::human_percent;
using commands::human_time;
using commands::human_whole;
using commands::Row;

namespace {

std::string known(const std::optional<double>& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "unknown";
}

std::string money_of(const Plan& plan, const Candidate& row) {
  return row.cost ? human_money(*row.cost, plan.currency) : "unknown";
}

std::string time_of(const Candidate& row) {
  return row.wall_clock_s ? human_time(*row.wall_clock_s) : "unknown";
}

/// Whether published runs say what the rows cost in loss.
bool by_published_runs(const Plan& plan) { return plan.basis == "published-equal-loss"; }

std::string amount_of(const Plan& plan, double value) {
  if (plan.minimise == "time") return human_time(value);
  return plan.minimise == "cost" ? human_money(value, plan.currency) : fmt::format("{:.4g} kWh", value);
}

std::vector<Column> quality_columns(const Plan& plan) {
  if (!by_published_runs(plan)) return {{"perplexity", true}};
  return {{"loss, % (80 % interval)", true}, {"to the same loss", true}, {"P(row 1 less)", true}};
}

Row quality_cells(const Plan& plan, const Candidate& row) {
  if (!by_published_runs(plan)) return {row.perplexity ? fmt::format("{:.4g}", *row.perplexity) : ""};
  if (!row.loss) return {"not covered", "not covered", ""};
  return {fmt::format("{:+.2f} ({:+.2f} to {:+.2f})", row.loss->points, row.loss->low, row.loss->high),
          row.to_equal_loss ? amount_of(plan, *row.to_equal_loss) : "never",
          row.first_needs_less ? fmt::format("{:.2f}", *row.first_needs_less) : ""};
}

Row cells(const Plan& plan, const std::string& place, const Candidate& row) {
  Row all = {place, row.method, time_of(row), row.cost ? human_money(*row.cost, "") : "",
             row.energy_kwh ? fmt::format("{:.4g}", *row.energy_kwh) : ""};
  const Row quality = quality_cells(plan, row);
  all.insert(all.end(), quality.begin(), quality.end());
  const Row settings = {std::to_string(row.local_steps),
                        row.rounds ? std::to_string(*row.rounds) : "",
                        std::to_string(row.expert_overlap),
                        row.placement,
                        row.collective,
                        row.payload_dtype,
                        std::to_string(row.sites.size()),
                        human_percent(row.compute_utilization)};
  all.insert(all.end(), settings.begin(), settings.end());
  return all;
}

std::string answer(const Plan& plan) {
  if (plan.chosen.empty()) {
    std::string html = paragraph("No configuration meets all limits. The reasons are listed below.");
    for (const auto& [measure, row] : plan.least)
      html += paragraph(fmt::format("The least {} without limits is reached by {}: {}{}.", measure,
                                    name_of(row), time_of(row), row.cost ? ", " + money_of(plan, row) : ""));
    return html;
  }
  const Candidate& first = plan.chosen.front();
  std::vector<std::pair<std::string, std::string>> list = {
      {plan.has_choice ? "choice" : "recommended", name_of(first)},
      {"wall clock", time_of(first)},
      {"compute utilisation", human_percent(first.compute_utilization)}};
  if (first.cost) list.emplace_back("cost", money_of(plan, first));
  if (first.energy_kwh) list.emplace_back("energy", known(first.energy_kwh, "{:.4g} kWh"));
  if (first.loss) {
    list.emplace_back("loss against data-parallel training", quality_cells(plan, first)[0] + " %");
    list.emplace_back("to the same loss", quality_cells(plan, first)[1]);
  } else {
    list.emplace_back("perplexity", known(first.perplexity, "{:.4g}"));
  }
  list.emplace_back("wall clock of the unchanged scenario", time_of(plan.as_it_is));
  std::string html = figures(list);
  html += changed_factors(plan.inputs.provenance);
  if (!plan.limits.empty()) html += paragraph("Limits: " + scenario::joined(plan.limits) + '.');
  if (!plan.has_choice && !plan.why_no_choice.empty())
    html += paragraph("There is no single best configuration: " + plan.why_no_choice +
                      ". Fewer synchronisations and fewer copies of an expert can reduce quality.");
  return html;
}

/// The tried methods of which no configuration is left.
std::string without_configuration(const Plan& plan) {
  std::vector<std::string> names;
  for (const std::string& name : plan.methods_tried) {
    if (std::none_of(plan.methods.begin(), plan.methods.end(),
                     [&](const Candidate& row) { return row.method == name; }))
      names.push_back(name);
  }
  return names.empty() ? ""
                       : paragraph("No configuration is possible and within the limits for: " +
                                   scenario::joined(names) + '.');
}

std::string dropped(const Plan& plan) {
  std::vector<Row> rows;
  for (const Dropped& entry : plan.dropped)
    rows.push_back({entry.reason, human_whole(entry.count), entry.example});
  return rows.empty()
             ? ""
             : heading(3, "Dropped candidates") +
                   table("Reasons for dropping candidates", {{"reason"}, {"count", true}, {"example"}}, rows);
}

}  // namespace

std::string answer_of(const Plan& plan) {
  const std::string least =
      plan.minimise == "time" ? "the shortest wall clock" : "the least " + plan.minimise;
  if (plan.chosen.empty()) return fmt::format("No configuration meets all limits (plan for {})", least);
  const Candidate& first = plan.chosen.front();
  const std::string amount = amount_text(plan, first);
  if (!plan.has_choice)
    return fmt::format("No single best configuration; recommended: {} with {}", name_of(first), amount);
  if (plan.basis.ends_with("equal-loss"))
    return fmt::format("{} is the choice for {} to the loss of data-parallel training; its run: {}",
                       name_of(first), least, amount);
  return fmt::format("{} is the choice for {}: {}", name_of(first), least, amount);
}

std::string plan_section(const Plan& plan) {
  std::string html = answer(plan);
  std::vector<Row> rows;
  std::vector<std::string> commands;
  for (const Candidate& row : plan.chosen) {
    rows.push_back(cells(plan, std::to_string(rows.size() + 1), row));
    if (!row.command.empty()) commands.push_back(row.command);
  }
  rows.push_back(cells(plan, "baseline", plan.as_it_is));
  std::vector<Column> columns = {{"row"},
                                 {"method"},
                                 {"wall clock", true},
                                 {plan.currency.empty() ? "cost" : "cost, " + plan.currency, true},
                                 {"kWh", true}};
  for (const Column& column : quality_columns(plan)) columns.push_back(column);
  const std::vector<Column> of_settings = {{"K", true},     {"rounds", true},     {"O_e", true},
                                           {"placement"},   {"collective"},       {"wire format"},
                                           {"sites", true}, {"utilisation", true}};
  columns.insert(columns.end(), of_settings.begin(), of_settings.end());
  html +=
      heading(3, plan.chosen.empty() ? "The unchanged scenario"
                 : plan.has_choice   ? "Ranking"
                                     : "Frontier") +
      (plan.basis == "quality-unknown" && !plan.chosen.empty()
           ? paragraph("Each row is the best configuration that takes no more of any of these risks to "
                       "quality: more steps between synchronisations, fewer copies of an expert, coarser "
                       "number formats, later updates.")
           : "") +
      (by_published_runs(plan)
           ? paragraph("Rows that are not covered by published runs take less time or cost for their run; "
                       "nothing says what they cost in loss.")
           : "") +
      table("Simulated configurations; baseline: the unchanged scenario", columns, rows);
  if (!plan.as_it_is.problem.empty()) html += paragraph("The baseline " + plan.as_it_is.problem + '.');
  if (!plan.chosen.empty()) {
    html += heading(3, "Frontier: wall clock against steps between synchronisations") +
            chart(plan_frontier_chart(plan));
    html += folded("Commands that simulate the rows", code_bullets(commands));
  }
  if (!plan.methods.empty())
    html += heading(3, "The best configuration of each method") + chart(methods_chart(plan)) +
            without_configuration(plan);
  if (!plan.sensitivity.inputs.empty())
    html += heading(3, "The first row, if an input is 10 % smaller or larger") +
            chart(sensitivity_chart(plan.sensitivity));
  html += dropped(plan);
  html += heading(3, "Evaluated combinations") +
          paragraph(fmt::format("The closed form evaluated {} combinations, and {} of them were simulated.",
                                human_whole(plan.candidates), human_whole(plan.simulated))) +
          bullets(plan.tried);
  return html + inputs_section(plan.inputs, "", true);
}

}  // namespace fomoe::report
