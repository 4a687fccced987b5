#include "costmodel/compose/warnings.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "costmodel/counts/memory.hpp"
#include "platforms/each_path.hpp"

namespace fomoe::costmodel {

namespace {

/// A run that fits as far as its allocated memory goes, and may fail for the fragments between its blocks.
std::string tight_memory(const Counts& counts) {
  const auto [needed, available, most] = fullest_gpu(counts);
  if (available == 0 || needed > available || most <= available) return {};
  std::ostringstream text;
  text << std::setprecision(3) << "a GPU has " << available / 0x1p30 << " GiB for programs, and needs "
       << needed / 0x1p30 << " to " << most / 0x1p30
       << " GiB, by what the allocator reserves: the run may end for lack of memory";
  return text.str();
}

/// Replicas without a sequence in a step, which a given MFU hides.
std::string idle_replicas(const Scenario& scenario, const Counts& counts) {
  for (std::size_t i = 0; i < counts.sites.size(); ++i) {
    const ComputeSpec& compute =
        scenario.site_compute.empty() ? scenario.compute : scenario.site_compute[i].compute;
    const auto* device = std::get_if<AssumedDevice>(&compute);
    const SiteCounts& site = counts.sites[i];
    const double replicas = site.load.gpus / site.model.gpus.gpus_per_replica();
    if (device == nullptr || device->mfu <= 0 || site.load.site_stages > 1 || site.load.sequences <= 0 ||
        replicas <= site.load.sequences)
      continue;
    std::ostringstream text;
    text
        << "a site has " << replicas << " replicas of the model (" << site.load.gpus << " GPUs) and "
        << site.load.sequences
        << " sequences in a step, so that some replicas compute nothing; the time assumes that all GPUs have "
           "the given MFU";
    return text.str();
  }
  return {};
}

/// Sites whose tokens use fewer experts than the model's, and which therefore compute less.
std::string fewer_experts(const Scenario& scenario, const Counts& counts) {
  if (scenario.strategy.skip_token) return {};
  for (const SiteCounts& site : counts.sites) {
    if (site.share_of_training == 0 ||
        site.used_experts >= static_cast<double>(scenario.model.active_experts) * (1 - 1e-9))
      continue;
    std::ostringstream text;
    text << std::setprecision(3) << "a site holds " << site.used_experts << " of the "
         << scenario.model.experts << " experts of a layer, and a token uses "
         << scenario.model.active_experts
         << ": tokens at the site use only those that it holds, which takes fewer FLOPs and trains another "
            "model; "
            "no published run shows what that does to its loss";
    return text.str();
  }
  return {};
}

/// A log that does not say how many sequences a GPU had in memory at a time.
std::string unknown_micro_batch(const ProfiledCompute& compute) {
  const StepProfile& profile = compute.profile;
  if (compute.micro_batch_sequences > 0 || !profile.origin || profile.origin->file.empty()) return {};
  return "memory is counted without activations, and a GPU may need more than is said, because " +
         profile.source +
         " does not state the micro-batch of its log; import the log again if an earlier version did, or "
         "give "
         "compute.micro_batch_sequences";
}

}  // namespace

std::vector<std::string> warnings_about(const Scenario& scenario) {
  std::vector<std::string> warnings;
  const auto add_profile = [&](const ComputeSpec& compute) {
    const auto* profiled = std::get_if<ProfiledCompute>(&compute);
    if (profiled == nullptr) return;
    for (const std::string& text : {superseded_text(profiled->profile), disturbed_text(profiled->profile),
                                    unknown_micro_batch(*profiled)}) {
      if (!text.empty() && std::find(warnings.begin(), warnings.end(), text) == warnings.end())
        warnings.push_back(text);
    }
  };
  if (scenario.site_compute.empty()) add_profile(scenario.compute);
  for (const SiteCompute& site : scenario.site_compute) add_profile(site.compute);
  const auto add_device = [&](const std::vector<Provenance>& catalogue) {
    for (const Provenance& entry : catalogue)
      if (entry.what == kOtherDevice &&
          std::find(warnings.begin(), warnings.end(), entry.detail) == warnings.end())
        warnings.push_back(entry.detail);
  };
  if (scenario.site_compute.empty()) add_device(scenario.catalogue);
  for (const SiteCompute& site : scenario.site_compute) add_device(site.catalogue);
  const Counts counts = counts_of(scenario);
  for (const std::string& text :
       {tight_memory(counts), idle_replicas(scenario, counts), fewer_experts(scenario, counts)})
    if (!text.empty()) warnings.push_back(text);
  return warnings;
}

std::string shared_devices(const ComputeSpec& compute, const std::vector<SiteCompute>& of_sites) {
  std::vector<std::string> notes;
  const auto add_profile = [&](const ComputeSpec& one) {
    const auto* profiled = std::get_if<ProfiledCompute>(&one);
    if (profiled == nullptr) return;
    double waited = 0, for_device = 0;
    for (const ProfilePoint& point : profiled->profile.points) {
      waited = std::max(waited, point.waited_share.value_or(0));
      for_device = std::max(for_device, point.device_waited_share.value_or(0));
    }
    const std::string said = sharing_text(profiled->profile, waited, for_device);
    if (said.empty()) return;
    const std::string note = "the step times of " + profiled->profile.source + ": " + said;
    if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
  };
  if (of_sites.empty()) add_profile(compute);
  for (const SiteCompute& site : of_sites) add_profile(site.compute);
  std::string text;
  for (const std::string& note : notes) text += (text.empty() ? "" : "; ") + note;
  return text;
}

namespace {

/// The path whose connections carry the smallest share of what its links do.
struct Limited {
  double share = 1;  // 1: all of it
  double carried_bytes_per_s = 0;
  int from = 0, to = 0;
};

Limited most_limited(const platforms::Platform& platform, const NetworkModel& network) {
  Limited most;
  platforms::each_path(platform, [&](int a, int b, const platforms::Path& path) {
    const double cap = flow_cap_bytes_per_s(network, path.latency_s + platform.path(b, a).latency_s, path);
    const double share = cap / platform.route_bytes_per_s(a, b);
    if (share < most.share) most = {share, cap, a, b};
  });
  return most;
}

/// "at most 0.149 of the 10 Gb/s from a to b"
std::string text_of(const Limited& limited, const platforms::Platform& platform) {
  std::ostringstream text;
  text << std::setprecision(3) << "at most " << limited.carried_bytes_per_s * 8e-9 << " of the "
       << limited.carried_bytes_per_s / limited.share * 8e-9 << " Gb/s from "
       << platform.sites[static_cast<std::size_t>(limited.from)].name << " to "
       << platform.sites[static_cast<std::size_t>(limited.to)].name;
  return text.str();
}

}  // namespace

std::string fewer_connections(const Scenario& scenario) {
  const platforms::Platform& platform = scenario.platform;
  if (platform.measured_connections <= scenario.network.streams) return {};
  NetworkModel host = scenario.network;
  const bool simulated = host.send_buffer_bytes.has_value();
  if (!simulated) host.send_buffer_bytes = linux_host().send_buffer_bytes;
  const Limited limited = most_limited(platform, host);
  if (limited.share >= 1) return {};
  std::ostringstream text;
  text << std::setprecision(3) << "the rates of platform " << platform.name << " were measured with "
       << platform.measured_connections << " connections between two sites at a time; the "
       << scenario.network.streams << " of network_model.streams, with a send buffer of "
       << *host.send_buffer_bytes / (1 << 20) << " MiB, carry " << text_of(limited, platform) << "; "
       << (simulated ? "a simulation includes this"
                     : "this answer leaves it out, and network_model.host=linux includes it")
       << ", and network_model.streams=" << platform.measured_connections
       << " has the connections of the measurement";
  return text.str();
}

namespace {

/// What limits the connections of the path.
std::string reason_of(const Limited& limited, const platforms::Platform& platform,
                      const NetworkModel& network) {
  const platforms::Path& path = platform.path(limited.from, limited.to);
  const double round_trip_s = path.latency_s + platform.path(limited.to, limited.from).latency_s;
  NetworkModel without_loss = network, without_window = network;
  without_loss.loss_rate.reset();
  without_window.tcp_window_bytes.reset();
  const auto raises = [&](const NetworkModel& other) {
    return flow_cap_bytes_per_s(other, round_trip_s, path) > limited.carried_bytes_per_s;
  };
  if (raises(without_loss)) return "lost packets";
  if (raises(without_window)) return "network_model.tcp_window";
  if (connections_of(network, path) * path.connection_bytes_per_s <= limited.carried_bytes_per_s)
    return "the rate of one connection of this path";
  return "the buffers of their sockets";
}

}  // namespace

std::string more_connections(const platforms::Platform& platform, const NetworkModel& network) {
  constexpr double kWorthSaying = 0.5;
  constexpr int kMostStreams = 64;
  if (!network.loss_rate && !network.initial_window_bytes) return {};
  const Limited limited = most_limited(platform, network);
  if (limited.share >= kWorthSaying) return {};
  const int of_path = platform.path(limited.from, limited.to).streams;
  const int present = of_path > 0 ? of_path : network.streams;
  const std::string key =
      of_path > 0 ? "site." + platform.sites[static_cast<std::size_t>(limited.from)].name + ".streams"
                  : "network_model.streams";
  const double wanted = std::ceil(present / limited.share);
  const int streams = wanted < kMostStreams ? static_cast<int>(wanted) : kMostStreams;
  if (streams <= present) return {};
  std::ostringstream text;
  text << std::setprecision(3) << "the " << present << " of " << key << " carry "
       << text_of(limited, platform) << ", because of " << reason_of(limited, platform, network) << "; "
       << key << '=' << streams << " would carry " << std::min(1.0, limited.share * streams / present) * 100
       << " %";
  return text.str();
}

}  // namespace fomoe::costmodel
