// A pattern through a store: sites upload, and download the result or what others have uploaded.
#pragma once
#include "trainer/comm/pattern_run.hpp"

namespace fomoe::trainer {

/// The store is at position 0. All-reduce: it adds up what the others upload, in the order of positions, and
/// they download the mean. All-to-all broadcast: each downloads what all others have uploaded, and takes the
/// mean itself. Broadcast: position 1 uploads, and the positions after it download.
///
/// The mean of sparse payloads has the format Payload::result. It keeps the largest values if there are more
/// than this format has place for.
class ThroughStore : public PatternRun {
 public:
  ThroughStore(const costmodel::Transfer& transfer, const PieceOf& piece, Transport& transport, bool exact,
               const at::Tensor& like);

  [[nodiscard]] bool contributes(int p) const override;
  [[nodiscard]] bool gets_result(int p) const override;
  void before(int step) override;
  void add_to(Phase& phase, int step) override;
  void after(int step) override;
  [[nodiscard]] at::Tensor result(int p) override;

 private:
  [[nodiscard]] at::Tensor mean_at(int p);
  [[nodiscard]] const at::Tensor& like_at(int p) { return value(p).defined() ? value(p) : like_; }
  at::Tensor& heard(int at, int from) {
    return heard_[static_cast<std::size_t>(at)][static_cast<std::size_t>(from)];
  }

  costmodel::Pattern pattern_;
  at::Tensor like_;
  WireCodec result_codec_;
  std::vector<std::vector<at::Tensor>> heard_;  // [receiver][origin], encoded; origin 0: the store's mean
};

}  // namespace fomoe::trainer
