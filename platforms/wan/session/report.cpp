// Writes the JSON report of a fomoe-wan session.
#include <nlohmann/json.hpp>

#include "platforms/wan/session/session.hpp"

namespace fomoe::platforms::wan {

namespace {

using Json = nlohmann::ordered_json;

Json measured(const Measured& value) { return {{"alone", value.alone}, {"together", value.together}}; }

}  // namespace

std::string report_json(const Layout& layout, const SessionOptions& options, const Check& check,
                        const Circumstances& circumstances, const Supervised& supervised,
                        const std::string& run_report) {
  Json report = {{"schema", "fomoe.wan/1"}};
  report["command"] = options.command;
  report["exit_status"] = supervised.status;
  Json& asked = report["asked"];
  asked["mtu"] = layout.mtu;
  asked["uplink_queue"] = to_string(options.uplink_queue);
  for (const Link& link : layout.links) {
    asked["links"].push_back(
        {{"name", link.name}, {"bytes_per_s", link.bytes_per_s}, {"queue_bytes", link.queue_bytes}});
  }
  report["checked"] = options.check;
  report["relay_most_bytes_per_s"] = check.relay_bytes_per_s;
  report["aggregate_bytes_per_s"] = check.aggregate_bytes_per_s;
  report["rates_include"] = "IP and TCP headers";
  report["pairs"] = Json::array();
  const auto name_of = [&](int site) { return layout.sites[static_cast<std::size_t>(site)].name; };
  for (int from = 0; from < layout.size(); ++from) {
    for (int to = 0; to < layout.size(); ++to) {
      if (from == to) continue;
      Json pair = {{"from", name_of(from)},
                   {"to", name_of(to)},
                   {"latency_s", layout.route(from, to).latency_s},
                   {"asked_bytes_per_s", layout.rate_bytes_per_s(from, to)}};
      for (const PairCheck& found : check.pairs) {
        if (found.from != from || found.to != to) continue;
        pair["measured_bytes_per_s"] = measured(found.bytes_per_s);
        pair["asked_round_trip_s"] = found.asked_round_trip_s;
        pair["measured_round_trip_s"] = measured(found.round_trip_s);
      }
      report["pairs"].push_back(std::move(pair));
    }
  }
  report["kernel"] = circumstances.kernel;
  report["congestion_control"] = circumstances.congestion_control;
  report["slow_start_after_idle"] = circumstances.slow_start_after_idle;
  report["socket_buffers"] = to_string(options.buffers);
  report["tcp_wmem"] = circumstances.send_buffer;
  report["tcp_rmem"] = circumstances.receive_buffer;
  report["relay"] = {{"packets", circumstances.relayed_packets},
                     {"bytes", circumstances.relayed_bytes},
                     {"dropped_packets", circumstances.dropped_packets},
                     {"mean_late_s", circumstances.mean_late_s},
                     {"most_late_s", circumstances.most_late_s}};
  report["sites"] = Json::array();
  for (std::size_t site = 0; site < supervised.sites.size(); ++site) {
    Json entry = {{"name", layout.sites[site].name},
                  {"address", dotted(layout.sites[site].address)},
                  {"exit_status", supervised.sites[site].status}};
    if (options.quota_cores) entry["cpu_quota_cores"] = *options.quota_cores;
    if (options.cores) entry["cores"] = options.cores->sites[site];
    report["sites"].push_back(std::move(entry));
  }
  // A run report that is not valid JSON is left out, so that the rest of the report stays readable.
  const Json embedded = Json::parse(run_report, nullptr, false);
  report["run_report"] = run_report.empty() || embedded.is_discarded() ? Json(nullptr) : embedded;
  return report.dump(2) + "\n";
}

}  // namespace fomoe::platforms::wan
