#include "costmodel/formula/sent_to.hpp"

#include <algorithm>

#include "costmodel/formula/links/region_links.hpp"
#include "costmodel/formula/own_pace_times.hpp"

namespace fomoe::costmodel {

namespace {

/// The site to which one site sends in a ring.
int next_in_ring(const std::vector<int>& ring, int site) {
  const auto own = std::find(ring.begin(), ring.end(), site);
  return own + 1 == ring.end() ? ring.front() : *(own + 1);
}

/// Adds the bytes that a site sends in a stage inside regions or between them.
void add_of_groups(const StagePart& part, int site, double bytes, std::vector<double>& to) {
  for (const SiteGroup& group : *part.groups) {
    const std::vector<int>& sites = group.sites;
    if (std::find(sites.begin(), sites.end(), site) == sites.end()) continue;
    if (part.stage.between == Between::ring) {
      to[static_cast<std::size_t>(next_in_ring(sites, site))] += bytes;
      continue;
    }
    for (const int other : sites)
      if (other != site) to[static_cast<std::size_t>(other)] += bytes / static_cast<double>(sites.size() - 1);
  }
}

/// In a star, the first site sends to all others what each of them sends to it: more than the mean over
/// sites.
void add_of_star(const Stage& stage, double sites, int site, RoundBytes& bytes) {
  const double out = stage.out_share * stage.bytes, back = (1 - stage.out_share) * stage.bytes;
  const double each_out = (1 - stage.out_share) * stage.pair_bytes,
               each_back = stage.out_share * stage.pair_bytes;
  const double mean = (out + (sites - 1) * each_out) / sites;
  bytes.sent += stage.times_per_round * ((site == 0 ? out : each_out) - mean);
  bytes.received += stage.times_per_round * ((site == 0 ? back : each_back) - mean);
}

}  // namespace

RoundBytes round_bytes(const Resolved& resolved, int site) {
  const PlanSummary& plan = resolved.plan;
  const Counts& counts = resolved.counts;
  RoundBytes bytes{plan.sent.total(), plan.received_bytes()};
  for (const Stage& stage : plan.stages)
    if (stage.star) add_of_star(stage, counts.axes.sites, site, bytes);
  const double mean = counts.fixed.expert_elements * (counts.axes.expert_overlap / counts.axes.sites);
  if (counts.alike || mean == 0) return bytes;
  const double more = counts.at(site).expert_elements / mean - 1;
  double experts_received = plan.sent.expert_sync;
  if (plan.store_requests() > 0) {
    experts_received = 0;
    for (const Stage& stage : plan.stages) {
      if (stage.objects[1].count > 0)
        experts_received += stage.times_per_round * stage.objects[1].downloaded();
    }
  }
  bytes.sent += more * plan.sent.expert_sync;
  bytes.received += more * experts_received;
  return bytes;
}

std::vector<double> sent_to(const Resolved& resolved, int site, double bytes) {
  const auto sites = static_cast<std::size_t>(resolved.counts.axes.sites);
  std::vector<double> to(sites, 0.0);
  if (sites < 2) return to;
  double all = 0;
  for (const Stage& stage : resolved.plan.stages) {
    const bool store = stage.between == Between::store;
    const double weight = stage.times_per_round *
                          (store ? stage.objects[0].uploaded() + stage.objects[1].uploaded() : stage.bytes);
    if (weight <= 0 || stage.part_of_previous) continue;
    all += weight;
    if (store) continue;  // it is no site
    if (stage.among != Among::all_sites && resolved.links.sets.regions != nullptr) {
      for (const StagePart& part : parts_of(stage, resolved.links.sets))
        add_of_groups(part, site, stage.times_per_round * part.stage.bytes, to);
      continue;
    }
    if (stage.between == Between::owners && resolved.links.sets.ring_order.size() == sites) {
      const double of_ring = stage.times_per_round * (stage.bytes - stage.beside.bytes);
      to[static_cast<std::size_t>(next_in_ring(resolved.links.sets.ring_order, site))] += of_ring;
      for (const OwnerHop& hop : resolved.links.sets.owner_hops)
        if (hop.from == site) to[static_cast<std::size_t>(hop.to)] += (weight - of_ring) * hop.share;
      continue;
    }
    const bool star = resolved.own_pace || stage.between == Between::first_site;
    if (stage.between == Between::ring && resolved.links.sets.ring_order.size() == sites) {
      to[static_cast<std::size_t>(next_in_ring(resolved.links.sets.ring_order, site))] += weight;
    } else if (star && site > 0) {
      to[0] += weight;
    } else {
      for (std::size_t other = 0; other < sites; ++other)
        if (other != static_cast<std::size_t>(site)) to[other] += weight / static_cast<double>(sites - 1);
    }
  }
  for (double& part : to) part = all > 0 ? part * bytes / all : 0;
  return to;
}

namespace {

/// Of one site, per round, also where sites do not wait for each other.
RoundBytes bytes_of(const Resolved& resolved, int site) {
  if (!resolved.own_pace) return round_bytes(resolved, site);
  const OwnPaceSite own = own_pace_site(resolved, site);
  return {own.bytes_sent / resolved.plan.rounds, own.bytes_received / resolved.plan.rounds};
}

}  // namespace

BusyPort busiest_port(const Resolved& resolved) {
  const platforms::Platform* platform = resolved.links.sets.sites.get();
  const auto& stages = resolved.plan.stages;
  const bool alike =
      platform == nullptr && resolved.counts.alike && !resolved.own_pace &&
      std::none_of(stages.begin(), stages.end(), [](const Stage& stage) { return stage.star; });
  const int sites = alike ? 1 : static_cast<int>(resolved.counts.axes.sites);
  BusyPort busiest;
  const auto consider = [&](int site, bool uplink, double bytes, double bytes_per_s) {
    const double share = bytes / bytes_per_s / resolved.times.round.duration_s;
    if (share > busiest.share) busiest = {site, uplink, share};
  };
  for (int site = 0; site < sites; ++site) {
    const RoundBytes bytes = bytes_of(resolved, site);
    const auto index = static_cast<std::size_t>(site);
    const Links& all = resolved.links.sets.all;
    consider(site, true, bytes.sent,
             platform ? platform->sites[index].uplink_bytes_per_s : all.uplink_bytes_per_s);
    consider(site, false, bytes.received,
             platform ? platform->sites[index].downlink_bytes_per_s : all.downlink_bytes_per_s);
  }
  return busiest;
}

}  // namespace fomoe::costmodel
