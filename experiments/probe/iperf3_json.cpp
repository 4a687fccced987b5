#include "experiments/probe/iperf3_json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "experiments/text/nesting.hpp"

namespace fomoe::probe {

using nlohmann::json;

namespace {

void refuse_other_tests(const json& start) {
  const json& test = start.at("test_start");
  const std::string protocol = test.at("protocol");
  if (protocol != "TCP")
    throw Iperf3Error(fmt::format("the report is of {}; expected TCP, as iperf3 -c HOST -J sends", protocol));
  for (const char* kind : {"reverse", "bidir"}) {
    if (test.value(kind, 0.0) != 0)
      throw Iperf3Error(
          fmt::format("the report is of a test with --{}; expected a transfer from the client to the server, "
                      "as iperf3 -c HOST -J sends",
                      kind));
  }
}

/// "iperf 3.12" → "3.12"
std::string version_of(const std::string& text) {
  const std::size_t digit = text.find_first_of("0123456789");
  return digit == std::string::npos ? text : text.substr(digit);
}

/// nlohmann::json converts any number, also one that is too large for the type.
template <class Number>
Number at_most(double most, const json& value) {
  const double number = value.get<double>();
  if (!(std::abs(number) <= most))
    throw Iperf3Error(fmt::format("the report contains the number {}", number));
  return static_cast<Number>(number);
}

/// The shortest round trip that TCP saw; the mean contains the queue that the transfer itself fills.
std::optional<double> least_round_trip_s(const json& streams) {
  double least_us = 0;
  for (const json& stream : streams) {
    if (!stream.contains("sender")) continue;
    const json& sender = stream["sender"];
    // 0 if the kernel does not report it; some versions report only the mean.
    const double shortest_us = sender.value("min_rtt", 0.0);
    const double round_trip_us = shortest_us > 0 ? shortest_us : sender.value("mean_rtt", 0.0);
    if (round_trip_us > 0 && (least_us == 0 || round_trip_us < least_us)) least_us = round_trip_us;
  }
  if (least_us == 0) return std::nullopt;
  return least_us / 1e6;
}

}  // namespace

Iperf3Transfer read_iperf3(const std::string& text) {
  if (!scenario::excess_in_sorted_json(text).empty()) throw Iperf3Error("the output has too many levels");
  const json report = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!report.is_object()) throw Iperf3Error("the output is not a JSON object");
  if (report.contains("error") && report["error"].is_string()) {
    throw Iperf3Error(report["error"].get<std::string>());
  }
  try {
    refuse_other_tests(report.at("start"));
    if (report.at("end").contains("sum_sent_bidir_reverse"))  // older versions do not name the kind of test
      throw Iperf3Error(
          "the report is of a test with --bidir; expected a transfer from the client to the server, as "
          "iperf3 "
          "-c HOST -J sends");
    const json& received = report.at("end").at("sum_received");
    Iperf3Transfer transfer;
    transfer.bytes_per_s = received.at("bits_per_second").get<double>() / 8;
    transfer.seconds = received.at("seconds");
    transfer.streams = at_most<int>(1e6, report.at("start").at("test_start").at("num_streams"));
    transfer.retransmits =
        at_most<std::int64_t>(1e15, report.at("end").at("sum_sent").value("retransmits", json(0)));
    transfer.round_trip_s = least_round_trip_s(report.at("end").at("streams"));
    transfer.version = version_of(report.at("start").at("version"));
    if (!(transfer.bytes_per_s > 0)) throw Iperf3Error("no data arrived");
    return transfer;
  } catch (const json::exception& error) {
    throw Iperf3Error(fmt::format("the output is not a report of iperf3 -c HOST -J: {}", error.what()));
  }
}

}  // namespace fomoe::probe
