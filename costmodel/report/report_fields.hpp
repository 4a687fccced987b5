// The fields of a RunReport that are one number or one text. The JSON writer, both readers and the CSV
// columns all go through these tables. A new field is its member in run_report.hpp and a row here.
#pragma once
#include <string_view>
#include <variant>

#include "costmodel/report/run_report.hpp"

namespace fomoe::costmodel {

/// A field of `Record`: its name in JSON, with its unit, and the member that holds it.
template <class Record>
struct ReportField {
  std::string_view name;
  std::variant<double Record::*, std::int64_t Record::*, std::string Record::*> member;
  /// A report without the field is refused. false: it is read as 0 or empty, since older reports lack it.
  bool required = true;
};

/// All but `executor`, which comes first everywhere.
inline constexpr ReportField<RunReport> kReportFields[] = {
    {"wall_clock_s", &RunReport::wall_clock_s},
    {"compute_utilization", &RunReport::compute_utilization},
    {"tokens_per_s", &RunReport::tokens_per_s},
    {"bytes_per_token", &RunReport::bytes_per_token},
    {"bytes_sent_per_site_per_round", &RunReport::bytes_sent_per_site_per_round},
    {"flops_per_token", &RunReport::flops_per_token, false},
    {"optimizer_steps", &RunReport::optimizer_steps},
    {"tokens", &RunReport::tokens},
};

inline constexpr ReportField<MeanRound> kRoundFields[] = {
    {"count", &MeanRound::count},
    {"duration_s", &MeanRound::duration_s},
    {"compute_s", &MeanRound::compute_s},
    {"communication_s", &MeanRound::communication_s},
    {"exposed_communication_s", &MeanRound::exposed_communication_s},
    {"transferring_s", &MeanRound::transferring_s},
    {"overlap_achieved", &MeanRound::overlap_achieved},
    {"idle_s", &MeanRound::idle_s},
    {"first_duration_s", &MeanRound::first_duration_s, false},
    {"upkeep_s", &MeanRound::upkeep_s, false},
};

inline constexpr ReportField<SiteReport> kSiteFields[] = {
    {"name", &SiteReport::name},
    {"bytes_sent", &SiteReport::bytes_sent},
    {"bytes_received", &SiteReport::bytes_received},
    {"memory_bytes", &SiteReport::memory_bytes},
    {"compute_s", &SiteReport::compute_s},
    {"exposed_communication_s", &SiteReport::exposed_communication_s},
    {"idle_s", &SiteReport::idle_s},
    {"upkeep_s", &SiteReport::upkeep_s, false},
};

inline constexpr ReportField<Bottleneck> kBottleneckFields[] = {
    {"limited_by", &Bottleneck::limited_by},
    {"link", &Bottleneck::link},
    {"link_busy_share", &Bottleneck::link_busy_share},
    {"waits_for", &Bottleneck::waits_for, false},
};

}  // namespace fomoe::costmodel
