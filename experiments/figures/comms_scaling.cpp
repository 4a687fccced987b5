// Paper, figure "cumulative communication overhead versus global tokens": a large model on 32 workers, fomoe
// with random placement and DDP. The curve is a staircase, because each synchronisation sends all its bytes
// at once.
#include <algorithm>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/plan_summary.hpp"
#include "experiments/figures/figure.hpp"

namespace fomoe::figures {

Figure comms_scaling() {
  constexpr int kSites = 32;
  constexpr std::int64_t kLocalSteps = 32;
  Figure figure;
  figure.columns = {"series", "expert_overlap", "tokens", "sent_bytes_per_site", "sent_bytes_all_sites"};
  const costmodel::ModelShape shape = family_member(8192, 512);

  struct Series {
    const char* name;
    const char* method;
    int overlap;
  };
  for (const Series& series :
       {Series{"ddp", "ddp", kSites}, Series{"full replica", "fomoe", kSites}, Series{"fomoe", "fomoe", 16},
        Series{"fomoe", "fomoe", 8}, Series{"fomoe", "fomoe", 4}}) {
    costmodel::Scenario scenario = paper_scenario(shape, kSites, kLocalSteps);
    scenario.strategy.method = costmodel::find_method(series.method);
    scenario.strategy.expert_overlap = series.overlap;
    const double bytes = costmodel::summarise(scenario).sent.total();
    const std::int64_t steps_per_round = costmodel::find_method(series.method)->every_step ? 1 : kLocalSteps;
    const std::string name =
        series.name + (series.overlap < kSites ? " O_e = " + std::to_string(series.overlap) : std::string());
    double sent = 0;
    for (std::int64_t step = 0; step < kTrainingSteps; step += steps_per_round) {
      const std::int64_t end = std::min(step + steps_per_round, kTrainingSteps);
      const std::int64_t tokens = end * kGlobalBatch * shape.sequence_length;
      // One point before and one after each burst. The bursts of ddp are so dense that one point per step
      // suffices.
      for (const double after : {sent, sent + bytes}) {
        if (steps_per_round == 1 && after == sent) continue;
        figure.rows.push_back(
            {name, static_cast<std::int64_t>(series.overlap), tokens, after, after * kSites});
      }
      sent += bytes;
    }
    figure.findings[name] = {{"bytes_per_site_per_round", bytes}, {"bytes_per_site", sent}};
  }
  const double ddp = figure.findings["ddp"]["bytes_per_site"];
  const double full_replica = figure.findings["full replica"]["bytes_per_site"];
  for (auto& [name, entry] : figure.findings.items()) {
    const double sent = entry["bytes_per_site"];
    entry["ddp_over_this"] = ddp / sent;
    entry["full_replica_over_this"] = full_replica / sent;
  }
  figure.assumptions = {{"local_steps", kLocalSteps},
                        {"reshuffle_rounds", 1},
                        {"payload_dtype", "bf16"},
                        {"collective", "ring: 2(M−1)/M of the averaged payload"},
                        {"sites", kSites},
                        {"model", scenario::to_json(shape)},
                        {"skip_token", false},
                        {"global_batch_sequences", kGlobalBatch},
                        {"steps", kTrainingSteps}};
  figure.notes = {
      "The paper states neither K, nor the reshuffling period, nor the bytes per value on the wire.",
      "ddp sends as much in every step as the full replica sends in every round."};
  return figure;
}

}  // namespace fomoe::figures
