#include "experiments/figures/trained/perplexity_figures.hpp"

#include <cmath>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/formula/paper_equations.hpp"
#include "costmodel/math/replicas.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/model/summary_inputs.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "experiments/files/quality_csv.hpp"

namespace fomoe::figures {

Trained paper_runs(Assumptions& assume, PaperRows which) {
  const costmodel::QualityTable table =
      which == PaperRows::merged ? scenario::paper_table()
                                 : scenario::paper_table(which == PaperRows::exp0 ? "exp0" : "exp1");
  const costmodel::ModelShape& shape = *costmodel::find_preset("small");
  Trained trained;
  for (const costmodel::QualityRow& row : table.rows) {
    Setting setting;
    setting.outer = row.strategy == "diloco" ? "nesterov" : row.strategy;
    setting.local_steps = row.local_steps;
    setting.sites = row.sites;
    setting.overlap = row.expert_overlap;
    const bool placed = which == PaperRows::exp1 || !setting.full_replica();
    setting.placement = placed ? row.placement : "";
    setting.d_model = shape.d_model;
    setting.layers = shape.layers;
    setting.experts = shape.experts;
    if (trained.contains(setting)) continue;
    costmodel::Scenario scenario = paper_scenario(assume, shape, row.sites);
    scenario.strategy.local_steps = row.local_steps;
    scenario.strategy.expert_overlap = row.expert_overlap;
    scenario.strategy.placement = *costmodel::enum_of<costmodel::PlacementKind>(row.placement);
    scenario.strategy.outer_optimizer = row.strategy == "local_adamw" ? costmodel::OuterOptimizer::local_adamw
                                                                      : costmodel::OuterOptimizer::nesterov;
    const costmodel::PlanSummary summary = costmodel::summarise(scenario);
    TrainedRuns runs;
    runs.losses = runs.site_losses = {std::log(row.perplexity)};
    runs.evenness = {0};  // not printed
    runs.bytes_per_site =
        costmodel::paper::sent_without_end(*scenario.strategy.method, costmodel::axes_of(scenario),
                                           costmodel::fixed_of(scenario))
            .total() *
        summary.rounds;
    runs.flops = static_cast<double>(scenario.workload.tokens) *
                 costmodel::flops_per_token(shape, costmodel::expert_shares(scenario).of_layer(0),
                                            /*skip_token=*/false, costmodel::FlopsAccounting::paper)
                     .total();
    trained.emplace(std::move(setting), std::move(runs));
  }
  return trained;
}

std::vector<std::string> point_columns() {
  return {"series",         "outer_optimizer", "local_steps",     "sites",          "expert_overlap",
          "placement",      "skip_token",      "experts",         "data_split",     "seeds",
          "perplexity",     "plus_minus",      "site_perplexity", "bytes_per_site", "flops",
          "router_entropy", "load_cv",         "ghost_share",     "bytes_frontier", "flops_frontier"};
}

std::vector<std::vector<Cell>> point_rows(const Trained& trained, const std::string& series,
                                          const std::function<bool(const Setting&)>& wanted) {
  std::vector<const Trained::value_type*> points;
  for (const auto& point : trained) {
    if (wanted(point.first)) points.push_back(&point);
  }
  const auto frontier = [&](double TrainedRuns::*cost) {
    std::vector<bool> result(points.size(), false);
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i]->second.bytes_per_site == 0) continue;
      std::vector<std::pair<double, double>> alike = {{points[i]->second.*cost, points[i]->second.loss()}};
      for (const auto* other : points) {
        const bool sends = other->second.bytes_per_site > 0;
        if (sends && other != points[i] && other->first.sites == points[i]->first.sites)
          alike.emplace_back(other->second.*cost, other->second.loss());
      }
      result[i] = on_frontier(alike).front();
    }
    return result;
  };
  const std::vector<bool> bytes_frontier = frontier(&TrainedRuns::bytes_per_site),
                          flops_frontier = frontier(&TrainedRuns::flops);
  std::vector<std::vector<Cell>> rows;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& [setting, runs] = *points[i];
    std::vector<double> perplexities;
    for (const double loss : runs.losses) perplexities.push_back(perplexity_of(loss));
    double mean = 0;
    for (const double perplexity : perplexities) mean += perplexity / static_cast<double>(runs.seeds());
    Cell deviation = std::string();
    if (runs.seeds() > 1) deviation = costmodel::spread_of(perplexities).standard_deviation;
    const auto split = setting.others.find("trainer.data_split");
    rows.push_back({series,
                    setting.outer,
                    setting.local_steps,
                    std::int64_t{setting.sites},
                    std::int64_t{setting.overlap},
                    setting.placement + (setting.others.contains(kReshuffle) ? ", drawn once" : ""),
                    std::string(setting.skip_token ? "true" : "false"),
                    setting.experts,
                    split == setting.others.end() ? std::string("shared") : split->second,
                    static_cast<std::int64_t>(runs.seeds()),
                    mean,
                    deviation,
                    perplexity_of(runs.site_loss()),
                    runs.bytes_per_site,
                    runs.flops,
                    runs.router_entropy,
                    runs.load_cv,
                    runs.ghost_share,
                    std::string(bytes_frontier[i] ? "true" : "false"),
                    std::string(flops_frontier[i] ? "true" : "false")});
  }
  return rows;
}

void add_claims(Figure& figure, const std::string& series, const std::vector<Claim>& claims) {
  figure.findings["claims_" + series] = to_json(claims);
  figure.text += series + '\n' + text_of(claims);
}

void state_proxy(Assumptions& assume) {
  assume.state(
      "proxy",
      "experiments/proxies/small-experts.toml: 0.66 M parameters, 79 % of them in experts, 3.1 M tokens of "
      "text and code in 768 steps of 32 sequences of 128 tokens");
  assume.state("proxy_perplexity",
               "of the model with the experts of all sites, on 512 validation sequences; fp32 on the wire");
  assume.state(
      "interval",
      "95 % by Student's t, with one standard deviation of the loss between seeds for all settings, pooled "
      "over the settings with more than one seed");
}

std::string trained_again(const std::string& settings) {
  return "experiments/proxies/build_corpus.py   # once: 110 MB of downloads, a minute\n"
         "fomoe-train run experiments/proxies/small-experts.toml --in-turn --threads 1 --seed 42 " +
         settings + " --output run.json   # two to four minutes on a core\n";
}

}  // namespace fomoe::figures
