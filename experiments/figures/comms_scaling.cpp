// Paper, figure "cumulative communication overhead versus global tokens": a large model on 32 workers, fomoe
// with random placement and DDP. The curve is a staircase, because each synchronisation sends all its bytes
// at once.
#include <algorithm>

#include "costmodel/compose/make_plan.hpp"
#include "costmodel/formula/paper_equations.hpp"
#include "costmodel/methods/all.hpp"
#include "costmodel/model/summary_inputs.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/plan_summary.hpp"
#include "experiments/figures/figure.hpp"

namespace fomoe::figures {

Figure comms_scaling(Assumptions& assume) {
  Figure figure;
  const int sites = static_cast<int>(assume.count("sites", 32, 1024));
  figure.columns = {"series", "expert_overlap", "tokens", "sent_bytes_per_site", "sent_bytes_all_sites"};
  const costmodel::ModelShape shape = family_member(assume, 8192, 512);

  struct Series {
    const char* name;
    const char* method;
    int overlap;
  };
  for (const Series& series :
       {Series{"ddp", "ddp", sites}, Series{"full replica", "fomoe", sites},
        Series{"fomoe", "fomoe", std::max(1, sites / 2)}, Series{"fomoe", "fomoe", std::max(1, sites / 4)},
        Series{"fomoe", "fomoe", std::max(1, sites / 8)}}) {
    costmodel::Scenario scenario = paper_scenario(assume, shape, sites);
    scenario.strategy.method = costmodel::find_method(series.method);
    scenario.strategy.expert_overlap = series.overlap;
    scenario.strategy.skip_token = assume.flag("skip_token", false);
    const double bytes =
        costmodel::paper::sent_without_end(*scenario.strategy.method, costmodel::axes_of(scenario),
                                           costmodel::fixed_of(scenario))
            .total();
    const std::int64_t local_steps = scenario.strategy.local_steps;
    const std::int64_t batch_tokens = scenario.workload.global_batch_sequences * shape.sequence_length;
    const std::int64_t steps = assume.count("steps", kTrainingSteps, 1'000'000);
    const std::int64_t steps_per_round = scenario.strategy.method->every_step ? 1 : local_steps;
    const std::string name =
        series.name + (series.overlap < sites ? " O_e = " + std::to_string(series.overlap) : std::string());
    double sent = 0;
    for (std::int64_t step = 0; step < steps; step += steps_per_round) {
      const std::int64_t end = std::min(step + steps_per_round, steps);
      const std::int64_t tokens = end * batch_tokens;
      // One point before and one after each burst. The bursts of ddp are so dense that one point per step
      // suffices.
      for (const double after : {sent, sent + bytes}) {
        if (steps_per_round == 1 && after == sent) continue;
        figure.rows.push_back(
            {name, static_cast<std::int64_t>(series.overlap), tokens, after, after * sites});
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
  assume.state("ring", "2(M−1)/M of the averaged payload");
  assume.state("model", scenario::to_json(shape));
  figure.notes = {
      "The paper states neither K, nor the reshuffling period, nor the bytes per value on the wire.",
      "ddp sends as much in every step as the full replica sends in every round."};
  return figure;
}

}  // namespace fomoe::figures
