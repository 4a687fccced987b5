#include "costmodel/compute/site_times.hpp"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "costmodel/inputs/at_site.hpp"
#include "costmodel/model/flops.hpp"
#include "costmodel/model/local_tokens.hpp"
#include "costmodel/plan/method.hpp"
#include "costmodel/plan/site_shares.hpp"
#include "platforms/support/input_error.hpp"

namespace fomoe::costmodel {

std::vector<ComputeTimes> site_times(const Scenario& scenario, const Counts& counts) {
  std::vector<ComputeTimes> times;
  double before = 0;  // sequences of the site before
  for (int site = 0; site < scenario.sites(); ++site) {
    const double work = sequences_of_work(scenario, site), sequences = work > 0 ? work : 1;
    if (counts.alike && sequences == before) {
      times.push_back(times.back());
    } else {
      times.push_back(compute_times(AtSite(scenario, site), counts, site, sequences));
    }
    before = sequences;
  }
  return times;
}

ComputeTimes site_compute_times(const Scenario& scenario, int site) {
  return compute_times(AtSite(scenario, site), counts_of(scenario), site, sequences_of_work(scenario, site));
}

std::vector<Provenance> compute_provenance(const Scenario& scenario, const std::vector<ComputeTimes>& times) {
  if (scenario.site_compute.empty()) return times.front().provenance;
  struct Entry {
    Provenance provenance;
    std::string sites;
    int count = 0, last = -1;  // number of sites, and the last one's index
  };
  std::vector<Entry> entries;
  for (int site = 0; site < scenario.sites(); ++site) {
    const std::string& name = scenario.platform.sites[static_cast<std::size_t>(site)].name;
    for (const Provenance& row : times[static_cast<std::size_t>(site)].provenance) {
      const auto known = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
        return entry.provenance.what == row.what && entry.provenance.detail == row.detail;
      });
      if (known == entries.end()) {
        entries.push_back({row, name, 1, site});
      } else if (known->last != site) {
        known->sites += ", " + name;
        ++known->count;
        known->last = site;
      }
    }
  }
  std::vector<Provenance> list;
  for (Entry& entry : entries) {
    if (entry.count < scenario.sites()) entry.provenance.what += " (" + entry.sites + ")";
    list.push_back(entry.provenance);
  }
  return list;
}

double training_peak_flops(const Scenario& scenario) {
  double sum = 0;
  for (int site = 0; site < scenario.sites(); ++site) {
    if (sequences_of_work(scenario, site) == 0) continue;
    const AtSite at(scenario, site);
    if (at.scenario().peak_flops == 0) return 0;
    sum += at.scenario().peak_flops * at.scenario().gpus.count;
  }
  return sum;
}

std::optional<RunEfficiency> run_efficiency(const Scenario& scenario,
                                            const std::vector<ComputeTimes>& times) {
  RunEfficiency sum;
  sum.peak_flops = training_peak_flops(scenario);
  double flops = 0, peak_flops = 0, executed_peak_flops = 0;
  for (int site = 0; site < scenario.sites(); ++site) {
    const double sequences = sequences_of_work(scenario, site);
    if (sequences == 0) continue;
    const AtSite at(scenario, site);
    const std::optional<Efficiency> own =
        step_efficiency(at, sequences, times[static_cast<std::size_t>(site)]);
    if (!own) return std::nullopt;
    flops += sequences;
    peak_flops += sequences / own->mfu;
    executed_peak_flops += sequences / own->kernel_efficiency.value_or(0);
  }
  sum.mfu = flops / peak_flops;
  // It is 0 if the value of one site is unknown.
  if (const double kernel = flops / executed_peak_flops; kernel > 0) sum.kernel_efficiency = kernel;
  return sum;
}

bool step_times_differ(const Scenario& scenario) {
  return steps_differ(scenario) || expert_work_differs(scenario.strategy, expert_shares(scenario)) ||
         (!std::holds_alternative<GivenStepTime>(scenario.compute) && !scenario.strategy.method->one_site &&
          scenario.strategy.method->residency != Residency::sharded &&
          scenario.workload.global_batch_sequences % scenario.sites() != 0);
}

std::string unequal_steps(const Scenario& scenario, const std::vector<ComputeTimes>& times) {
  if (!steps_differ(scenario) && !expert_work_differs(scenario.strategy, expert_shares(scenario))) return "";
  const auto name = [&](int site) { return scenario.platform.sites[static_cast<std::size_t>(site)].name; };
  int slowest = -1, fastest = -1;
  double longest_s = 0, shortest_s = platforms::kUnlimited;
  bool given = false;
  for (int site = 0; site < scenario.sites(); ++site) {
    if (sequences_of_work(scenario, site) == 0) continue;
    const AtSite at(scenario, site);
    given = given || std::holds_alternative<GivenStepTime>(at.scenario().compute);
    const double step_s = times[static_cast<std::size_t>(site)].step_s() *
                          scenario.platform.sites[static_cast<std::size_t>(site)].compute_factor;
    if (step_s > longest_s) slowest = site, longest_s = step_s;
    if (step_s < shortest_s) fastest = site, shortest_s = step_s;
  }
  if (longest_s < 1.05 * shortest_s) return "";
  std::ostringstream text;
  text << std::setprecision(3) << "a step takes " << longest_s << " s at " << name(slowest) << " and "
       << shortest_s << " s at " << name(fastest);
  if (!given && scenario.workload.batch_shares.empty())
    text << "; with workload.batch = \"balanced\", each site would get a part of the batch in proportion to "
            "its speed";
  return text.str();
}

std::vector<double> balanced_shares(const Scenario& scenario) {
  const double sequences = static_cast<double>(scenario.workload.global_batch_sequences) / scenario.sites();
  std::vector<double> shares;
  for (int site = 0; site < scenario.sites(); ++site) {
    const AtSite at(scenario, site);
    if (std::holds_alternative<GivenStepTime>(at.scenario().compute))
      throw InputError("workload.batch", "\"balanced\" with compute.step_time",
                       "step times that depend on the batch, from a profile or an mfu, or a batch_share in "
                       "each [[site]]",
                       "batch = \"equal\"");
    const double factor = scenario.platform.sites[static_cast<std::size_t>(site)].compute_factor;
    shares.push_back(sequences / (factor * compute_times(at, counts_of(at), site, sequences).gradients_s));
  }
  return shares;
}

}  // namespace fomoe::costmodel
