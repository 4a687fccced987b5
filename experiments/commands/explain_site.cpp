#include "experiments/commands/explain_site.hpp"

#include <fmt/format.h>

#include <utility>

#include "costmodel/compose/memory_remedy.hpp"
#include "costmodel/counts/memory.hpp"
#include "costmodel/inputs/at_site.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/model/site_model.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "costmodel/value/cost.hpp"
#include "experiments/text/human.hpp"

namespace fomoe::commands {

using costmodel::Scenario;

std::string text_of(const Line& line) {
  std::string text = fmt::format("  {} = {}", line.what, line.formula);
  if (!line.numbers.empty()) text += fmt::format("\n      = {}", line.numbers);
  return text + fmt::format("\n      = {}\n", line.result);
}

std::string whole(double value) {
  const std::string digits = fmt::format("{:.0f}", value);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string seconds(double value) { return fmt::format("{:.6g} s", value); }

namespace {

std::string flop_lines(const Scenario& scenario, int site, const costmodel::FlopsPerToken& flops) {
  return text_of({"model FLOPs of a token",
                  "dense matrices + attention, over every pair of positions + experts + router",
                  fmt::format("{} + {} + {} + {}", whole(flops.dense), whole(flops.attention),
                              whole(flops.expert), whole(flops.router)),
                  whole(flops.total())}) +
         text_of({"tokens of the slowest site in a step", "sequences of the site · tokens of a sequence",
                  fmt::format("{:.6g} · {}", costmodel::sequences_of_work(scenario, site),
                              scenario.model.sequence_length),
                  whole(costmodel::sequences_of_work(scenario, site) *
                        static_cast<double>(scenario.model.sequence_length))});
}

}  // namespace

std::string step_lines(const Scenario& of_all_sites, const costmodel::Resolved& resolved) {
  const int site = static_cast<int>(resolved.times.slowest);
  const costmodel::AtSite at(of_all_sites, site);
  const Scenario& scenario = at;
  const costmodel::ComputeTimes times = costmodel::slowest_times(of_all_sites, resolved);
  const costmodel::FlopsPerToken flops = resolved.counts.at(site).flops_per_token;
  std::string text;
  if (!of_all_sites.site_compute.empty() || !of_all_sites.workload.batch_shares.empty() ||
      (costmodel::expert_shares(of_all_sites).differ() &&
       !std::holds_alternative<costmodel::GivenStepTime>(scenario.compute)))
    text = fmt::format("  The steps of {} take longest, so it decides.\n",
                       scenario.platform.sites[static_cast<std::size_t>(site)].name);
  text += flop_lines(scenario, site, flops);
  const double inside_s = times.intra_site.before_optimizer();
  if (const auto* device = std::get_if<costmodel::AssumedDevice>(&scenario.compute)) {
    const double executed = times.step.counted_per_model_flops();
    text += text_of(
        {"forward and backward pass",
         fmt::format("FLOPs{} · tokens ÷ ({} · peak · GPUs)", executed != 1 ? " · executed share" : "",
                     device->mfu > 0 ? "MFU" : "kernel efficiency"),
         fmt::format("{}{} · {} ÷ ({:.4g} · {:.6g} TFLOP/s · {})", whole(flops.total()),
                     executed != 1 ? fmt::format(" · {:.4g}", executed) : "",
                     whole(costmodel::sequences_of_work(scenario, site) *
                           static_cast<double>(scenario.model.sequence_length)),
                     device->share_of_peak(), device->peak_flops / 1e12, scenario.gpus.count),
         seconds(times.gradients_s - inside_s)});
  } else if (const auto* profiled = std::get_if<costmodel::ProfiledCompute>(&scenario.compute)) {
    text += fmt::format("  forward and backward pass: {} from {}\n", seconds(times.gradients_s - inside_s),
                        profiled->profile.source);
  }
  if (inside_s > 0)
    text += fmt::format("  communication inside the site before the optimiser: {}\n", seconds(inside_s));
  if (const auto efficiency =
          costmodel::step_efficiency(scenario, costmodel::sequences_of_work(scenario, site),
                                     costmodel::site_compute_times(of_all_sites, site)))
    text += text_of(
        {"MFU of a step", "model FLOPs ÷ (step time · peak · GPUs)", "", human_percent(efficiency->mfu)});
  return text;
}

std::string memory_lines(const Scenario& of_all_sites) {
  const costmodel::Counts counts = costmodel::counts_of(of_all_sites);
  const costmodel::SiteCounts& fullest = counts.fullest_site();
  const costmodel::MemoryBytes memory = costmodel::memory_per_gpu(fullest.model, fullest.load);
  std::string names, numbers;
  for (const auto& [name, bytes] : {std::pair<const char*, double>{"weights", memory.weights},
                                    {"master weights", memory.master_weights},
                                    {"Adam moments", memory.moments},
                                    {"gradients", memory.gradients},
                                    {"outer state", memory.outer_state},
                                    {"gathered weights", memory.gathered_weights},
                                    {"activations", memory.activations},
                                    {"the fullest moment", memory.at_peak},
                                    {"buffers", memory.buffers},
                                    {"workspaces", memory.workspaces}}) {
    if (bytes == 0) continue;
    names += fmt::format("{}{}", names.empty() ? "" : " + ", name);
    numbers += fmt::format("{}{}", numbers.empty() ? "" : " + ", human_bytes(bytes));
  }
  std::string text = text_of({"memory of the fullest GPU", names, numbers, human_bytes(memory.total())});
  if (const std::string problem = costmodel::memory_problem(of_all_sites); !problem.empty())
    return text + fmt::format("  This does not fit: the scenario {}.\n", problem);
  if (const double available = costmodel::fullest_gpu(counts).available; available > 0)
    text += fmt::format("  It fits into the {} of a GPU.\n", human_bytes(available));
  return text;
}

std::string cost_lines(const Scenario& scenario, const costmodel::RunReport& report) {
  if (!report.cost || report.cost->currency.empty()) return "";
  const costmodel::Cost& cost = *report.cost;
  const auto money = [&](double amount) { return fmt::format("{:.2f} {}", amount, cost.currency); };
  return "\nThe cost\n" +
         text_of(
             {"GPUs", "GPU-hours · price, over all sites",
              fmt::format("{} GPUs · {:.6g} h", costmodel::all_gpus(scenario), report.wall_clock_s / 3600),
              money(cost.gpu_cost)}) +
         text_of({"egress", "bytes sent · price, in monthly tiers",
                  fmt::format("{} in the run",
                              human_bytes(report.bytes_per_token * static_cast<double>(report.tokens))),
                  money(cost.egress_cost)}) +
         (report.store ? text_of({"store", "requests · price + bytes downloaded · price",
                                  fmt::format("{:.6g} requests, {}", report.store->requests,
                                              human_bytes(report.store->bytes_sent)),
                                  money(cost.store_cost)})
                       : "") +
         text_of({"cost",
                  report.store ? "GPUs + egress + ports + electricity + store"
                               : "GPUs + egress + ports + electricity",
                  fmt::format("{} + {} + {} + {}{}", money(cost.gpu_cost), money(cost.egress_cost),
                              money(cost.port_cost), money(cost.energy_cost),
                              report.store ? " + " + money(cost.store_cost) : ""),
                  money(cost.cost_total)});
}

}  // namespace fomoe::commands
