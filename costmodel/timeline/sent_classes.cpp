#include "costmodel/timeline/sent_classes.hpp"

#include <algorithm>

namespace fomoe::costmodel {

SentBytes sent_by_class(SentBytes planned, const RunReport& report, bool own_pace) {
  if (!report.attendance && !own_pace) return planned;
  SentBytes sent = planned;
  const double synchronised = sent.dense + sent.expert_sync + sent.migration + sent.activations;
  if (synchronised <= 0) return sent;
  const double other = sent.total() - synchronised;
  double part = std::max(0.0, report.bytes_sent_per_site_per_round - other) / synchronised;
  if (!own_pace && part > 1) {
    sent.rejoin += (part - 1) * synchronised;
    part = 1;
  }
  for (double* bytes : {&sent.dense, &sent.expert_sync, &sent.migration, &sent.activations}) *bytes *= part;
  return sent;
}

}  // namespace fomoe::costmodel
