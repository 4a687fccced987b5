#include "experiments/figures/figure.hpp"

#include <fmt/format.h>

#include <cmath>

#include "costmodel/methods/all.hpp"
#include "experiments/text/human.hpp"
#include "experiments/text/units.hpp"

namespace fomoe::figures {

namespace {

constexpr Experiment kExperiments[] = {
    {"fig-parameter-distribution", "dense and sparse parameters against width", parameter_distribution},
    {"table-models", "parameter counts of the five model configurations", table_models},
    {"table-perplexity", "perplexities against K, placement and O_e, and where the tables disagree",
     table_perplexity},
    {"fig-flops-scaling", "training FLOPs against expert overlap, two models", flops_scaling},
    {"fig-comms-scaling", "cumulative bytes against tokens: ddp, full replica, fomoe", comms_scaling},
    {"fig-time-scaling",
     "training time against expert overlap and bandwidth, by the closed form and by simulation",
     time_scaling},
    {"fig-exp0", "full replicas: outer optimiser, K and M; dense models beside mixtures of experts",
     full_replicas},
    {"fig-exp1", "perplexity against bytes and FLOPs by expert overlap, placement and outer optimiser",
     expert_overlap},
    {"fig-skip-token", "perplexity against FLOPs with and without skip-token", skip_tokens},
    {"fig-lr-transfer", "the best learning rate by way of training, width and depth", learning_rates},
    {"training-choices", "inner moments, server momentum, an overlap of 4, and warm-up with more experts",
     training_choices},
    {"fig-skip-throughput", "measured step time against the share of ghost experts", skip_throughput},
    {"headline", "search for the configurations that give 1.42x and 45.44x", headline},
    {"predictions", "the paper's predictions 1 and 2, by formula and by counting", predictions},
    {"runs", "runs across data centres that others published, beside their predictions", published_runs},
};

}  // namespace

std::span<const Experiment> experiments() { return kExperiments; }

std::string csv_text(const Figure& figure) {
  std::string text;
  for (const std::string& column : figure.columns) {
    if (&column != &figure.columns.front()) text += ',';
    text += commands::csv_cell(column);
  }
  text += '\n';
  for (const std::vector<Cell>& row : figure.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text += ',';
      if (const auto* word = std::get_if<std::string>(&row[i])) {
        text += commands::csv_cell(*word);
      } else {
        text += std::visit([](const auto& value) { return fmt::format("{}", value); }, row[i]);
      }
    }
    text += '\n';
  }
  return text;
}

std::string json_text(const Experiment& experiment, const Figure& figure, const Json& assumptions) {
  Json rows = Json::array();
  for (const std::vector<Cell>& row : figure.rows) {
    Json object = Json::object();
    for (std::size_t i = 0; i < row.size(); ++i)
      std::visit([&](const auto& value) { object[figure.columns[i]] = value; }, row[i]);
    rows.push_back(std::move(object));
  }
  return scenario::to_text({{"schema", "fomoe.figure/1"},
                            {"id", std::string(experiment.id)},
                            {"title", std::string(experiment.sentence)},
                            {"source", "FoMoE, arXiv 2606.19025"},
                            {"assumptions", assumptions},
                            {"findings", figure.findings},
                            {"notes", figure.notes},
                            {"columns", figure.columns},
                            {"rows", rows}});
}

costmodel::ModelShape family_member(Assumptions& assume, std::int64_t d_model, std::int64_t layers) {
  costmodel::ModelShape shape;
  shape.name = fmt::format("d{}-L{}", d_model, layers);
  shape.d_model = d_model;
  shape.layers = layers;
  shape.heads = d_model / 64;
  shape.experts = 4 * d_model / 128;
  shape.active_experts = shape.experts / 4;
  shape.d_expert = 128;
  shape.vocabulary = assume.count("vocabulary", 200'019, 100'000'000);
  shape.sequence_length = assume.count("sequence_length", 2048, 100'000'000);
  return shape;
}

costmodel::Scenario paper_scenario(Assumptions& assume, const costmodel::ModelShape& shape, int sites) {
  costmodel::Scenario scenario;
  scenario.model = shape;
  const std::int64_t batch = assume.count("global_batch_sequences", 1024, 1'000'000);
  scenario.workload.global_batch_sequences = batch;
  scenario.workload.tokens = kTrainingSteps * batch * shape.sequence_length;
  costmodel::Strategy& strategy = scenario.strategy;
  strategy.method = costmodel::find_method("fomoe");
  strategy.local_steps = assume.count("local_steps", 32, 1'000'000);
  strategy.reshuffle_rounds = assume.count("reshuffle_rounds", 1, 1'000'000);
  strategy.expert_overlap = sites;
  strategy.placement = costmodel::PlacementKind::random;
  strategy.collective =
      costmodel::enum_of<costmodel::Collective>(assume.choice("collective", "ring", {"ring", "direct"}))
          .value();
  strategy.wire =
      costmodel::plain_format(costmodel::enum_of<costmodel::ElementType>(
                                  assume.choice("payload_dtype", "bf16", {"fp32", "bf16", "int8", "int4"}))
                                  .value());
  strategy.fragments = 1;
  scenario.compute = costmodel::GivenStepTime{1.0};
  scenario.platform = platforms::uniform(sites, gbit_per_s(1), gbit_per_s(1), 0);
  return scenario;
}

double gbit_per_s(double rate) { return scenario::bits_to_bytes(rate * 1e9); }

}  // namespace fomoe::figures
