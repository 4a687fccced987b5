// Paper, appendix "Model Falsifiability". Prediction 1: the broadcast volume of a reshuffle follows C·(1 −
// O_e/M). O_e is the number of sites that hold each expert, and M is the number of sites. The figure shows
// the volume twice: computed by the formula, and counted from random placements. Prediction 2: throughput
// grows super-linearly with 1/O_e, because the freed memory allows a larger local batch. The figure tests
// this claim.
#include <algorithm>
#include <cmath>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/formula/memory_throughput.hpp"
#include "costmodel/formula/paper_equations.hpp"
#include "costmodel/model/summary_inputs.hpp"
#include "costmodel/plan/placement.hpp"
#include "costmodel/plan/plan_summary.hpp"
#include "experiments/figures/figure.hpp"

namespace fomoe::figures {

namespace {

/// Share of a worker's experts that it must fetch after a reshuffle: the mean over random redraws.
double counted_fraction(const costmodel::ModelShape& shape, int sites, int overlap, std::uint64_t redraws,
                        std::uint64_t seed) {
  const auto draw = [&](std::uint64_t epoch) {
    return costmodel::random_placement(static_cast<int>(shape.layers), static_cast<int>(shape.experts), sites,
                                       overlap, seed, epoch);
  };
  costmodel::Placement before = draw(0);
  double fetched = 0;
  for (std::uint64_t epoch = 1; epoch <= redraws; ++epoch) {
    costmodel::Placement after = draw(epoch);
    fetched += static_cast<double>(costmodel::migrations(before, after).size());
    before = std::move(after);
  }
  // The number of experts that a worker holds, summed over all workers.
  const double held = static_cast<double>(shape.layers * shape.experts) * overlap;
  return fetched / (held * static_cast<double>(redraws));
}

void prediction_1(Figure& figure, Assumptions& assume) {
  const int sites = static_cast<int>(assume.count("prediction_1_sites", 8, 1024));
  const auto redraws = static_cast<std::uint64_t>(assume.count("redraws", 200, 1'000'000));
  const auto seed = static_cast<std::uint64_t>(assume.count("seed", 42));
  const costmodel::ModelShape& shape = *costmodel::find_preset("medium");
  double largest_gap = 0;
  for (int overlap = 1; overlap <= sites; ++overlap) {
    costmodel::Scenario scenario = paper_scenario(assume, shape, sites);
    scenario.strategy.expert_overlap = overlap;
    // T = 1: bytes of each reshuffle
    const double volume =
        costmodel::paper::sent_without_end(*scenario.strategy.method, costmodel::axes_of(scenario),
                                           costmodel::fixed_of(scenario))
            .migration;
    const costmodel::Fixed fixed = costmodel::fixed_of(scenario);
    const double held_bytes =
        fixed.expert_elements * costmodel::axes_of(scenario).bytes_per_element * overlap / sites;
    const double fraction = volume / held_bytes;
    const double counted = counted_fraction(shape, sites, overlap, redraws, seed);
    largest_gap = std::fmax(largest_gap, std::abs(counted - fraction));
    figure.rows.push_back({std::string("1 broadcast volume"), static_cast<std::int64_t>(overlap), fraction,
                           counted, volume, counted * held_bytes, std::string(""), std::string(""),
                           std::string(""), std::string("")});
  }
  figure.findings["prediction_1"] = {
      {"migrated_fraction", "1 − O_e/M: confirmed"},
      {"largest_difference_counted", largest_gap},
      {"volume",
       "C·(O_e/M)·(1 − O_e/M), because C contains the factor N_le = O_e·N_e/M: the volume peaks at O_e = M/2 "
       "and is not the straight line of the paper"}};
}

void prediction_2(Figure& figure, Assumptions& assume) {
  const int sites = static_cast<int>(assume.count("prediction_2_sites", 32, 1024));
  const costmodel::ModelShape shape = family_member(assume, 2048, 64);
  const double mfu = assume.number("mfu", 0.4, 0.001, 1),
               peak = assume.number("peak_flop_per_s", 989e12, 1e9, 1e18),
               memory = assume.number("gpu_memory_bytes", kH100MemoryBytes, 1e9, 1e13);
  const bool skip_token = assume.flag("skip_token", true);
  Json found = Json::array();
  for (const double gbit : assume.numbers("bandwidth_gbit_per_s", {1.0, 10.0, 100.0}, 1e-3, 1e6)) {
    double tokens_per_s_before = 0;  // tokens per second at half the overlap
    for (int overlap = 1; overlap <= sites; overlap *= 2) {
      costmodel::Scenario scenario = paper_scenario(assume, shape, sites);
      scenario.strategy.skip_token = skip_token;
      scenario.compute = costmodel::AssumedDevice{peak, mfu};
      scenario.gpus.gpu_memory_bytes = memory;
      scenario.gpus.activation_checkpointing = true;
      scenario.platform = platforms::uniform(sites, gbit_per_s(gbit), gbit_per_s(gbit), 0);
      scenario.workload.tokens = assume.count("tokens", 60'000'000'000);
      const costmodel::MemoryThroughput point = costmodel::memory_throughput(scenario, overlap);
      const double tokens_per_s = point.tokens_per_s;
      Cell exponent = std::string("");
      if (tokens_per_s > 0 && tokens_per_s_before > 0) {
        const double value = std::log2(tokens_per_s_before / tokens_per_s);
        exponent = value;
        found.push_back({{"bandwidth_gbit_per_s", gbit},
                         {"expert_overlap", overlap},
                         {"exponent", value},
                         {"super_linear", value > 1}});
      }
      figure.rows.push_back({std::string("2 throughput"), static_cast<std::int64_t>(overlap), std::string(""),
                             std::string(""), std::string(""), std::string(""), gbit,
                             point.micro_batch_sequences, tokens_per_s, exponent});
      tokens_per_s_before = tokens_per_s;
    }
  }
  const auto exponent_of = [](const Json& step) { return step["exponent"].get<double>(); };
  double largest = 0;
  for (const Json& step : found) largest = std::max(largest, exponent_of(step));
  figure.findings["prediction_2"] = {
      {"largest_exponent", largest},
      {"super_linear_at_some_step", largest > 1},
      {"not_among_the_steps", "overlaps whose replica does not fit into a GPU: their throughput is 0"},
      {"steps", found}};
  assume.state("prediction_2_model", scenario::to_json(shape));
  assume.state("gpu", "one per site; unless set otherwise an H100, with 989 TFLOP/s in bf16 and 80 GB");
  assume.state("local_batch",
               "the largest micro-batch that fits in addition to 18 B per parameter and 8 B of outer state");
  assume.state("activations",
               "checkpointed: layers keep only their inputs; the MFU includes the recomputation of the rest");
  assume.state("placement", "random, redrawn every round");
  assume.state("exponent",
               "log2(throughput at half the overlap ÷ throughput at this overlap); 1 means linear in 1/O_e");
}

}  // namespace

Figure predictions(Assumptions& assume) {
  Figure figure;
  figure.columns = {"prediction",
                    "expert_overlap",
                    "migrated_fraction_formula",
                    "migrated_fraction_counted",
                    "migrated_bytes_per_site_formula",
                    "migrated_bytes_per_site_counted",
                    "bandwidth_gbit_per_s",
                    "largest_local_batch_sequences",
                    "tokens_per_s",
                    "exponent"};
  prediction_1(figure, assume);
  assume.state("prediction_1_model", "medium");
  prediction_2(figure, assume);
  return figure;
}

}  // namespace fomoe::figures
