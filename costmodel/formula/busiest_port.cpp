#include "costmodel/formula/busiest_port.hpp"

#include <algorithm>

#include "costmodel/formula/own_pace_times.hpp"
#include "costmodel/formula/sent_to.hpp"

namespace fomoe::costmodel {
namespace {

/// Of one site, per round.
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
