#include "trainer/comm/through_store.hpp"

namespace fomoe::trainer {

using costmodel::Pattern;
using costmodel::Sending;

ThroughStore::ThroughStore(const costmodel::Transfer& transfer, const PieceOf& piece, Transport& transport,
                           bool exact, const at::Tensor& like)
    : PatternRun(transfer, piece, transport, exact),
      pattern_(transfer.pattern),
      like_(like),
      result_codec_(piece.payload.result.value_or(piece.payload.format), exact),
      heard_(static_cast<std::size_t>(size()), std::vector<at::Tensor>(static_cast<std::size_t>(size()))) {}

bool ThroughStore::contributes(int p) const { return p > 0 && (pattern_ != Pattern::broadcast || p == 1); }
bool ThroughStore::gets_result(int p) const { return p > (pattern_ == Pattern::broadcast ? 1 : 0); }

void ThroughStore::before(int step) {
  for (int p = 1; step == 0 && p < size(); ++p) {
    if (hosted(p) && contributes(p)) heard(p, p) = codec().encode(value(p));
  }
}

void ThroughStore::add_to(Phase& phase, int step) {
  steps().each(step, [&](const Sending& sent) {
    const int from = sent.from, to = sent.to, origin = sent.result ? 0 : sent.first;
    const WireCodec& format = sent.result ? result_codec_ : codec();
    send_bytes(
        phase, from, to, origin, format.bytes(elements()),
        [this, from, origin] { return heard(from, origin); },
        [this, to, origin](const at::Tensor& bytes) { heard(to, origin) = bytes; });
  });
}

void ThroughStore::after(int step) {
  if (step == 0 && pattern_ == Pattern::all_reduce && hosted(0))
    heard(0, 0) = result_codec_.encode(mean_at(0));
}

at::Tensor ThroughStore::mean_at(int p) {
  at::Tensor sum = codec().decode(heard(p, 1), elements(), like_at(p)).clone();
  for (int from = 2; from < size(); ++from) sum += codec().decode(heard(p, from), elements(), like_at(p));
  return sum / (size() - 1);
}

at::Tensor ThroughStore::result(int p) {
  if (phases() == 0) return value(p);  // a site alone
  if (pattern_ == Pattern::all_to_all_broadcast) return mean_at(p);
  if (pattern_ == Pattern::all_reduce) return result_codec_.decode(heard(p, 0), elements(), like_at(p));
  return codec().decode(heard(p, 1), elements(), like_at(p));
}

}  // namespace fomoe::trainer
