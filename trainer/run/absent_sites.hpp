// The sites without which a run goes on (trainer.on_lost_site = "drop").
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "experiments/scenario/trainer_section.hpp"
#include "platforms/platform.hpp"
#include "trainer/rendezvous/rendezvous.hpp"

namespace fomoe::trainer {

/// By site: whether the others cannot go on without it, because one of its nodes is a server or has another
/// place of its own in the plan.
std::vector<bool> needed_sites(const costmodel::Plan& plan, int sites);

/// Throws UsageError if a run of this plan cannot go on without a lost site. `processes` has the number of
/// processes of each site.
void check_drops(const costmodel::Method& method, const costmodel::Plan& plan,
                 const std::vector<int>& processes, const std::string& transport);

/// What the rendezvous does about lost sites (trainer.on_lost_site); empty: the run stops. A run that
/// `resumes` may begin without some of the sites.
std::optional<LostSites> lost_sites(const scenario::TrainerSettings& settings, const costmodel::Plan& plan,
                                    int sites, bool resumes);

class AbsentSites {
 public:
  /// No site is absent.
  explicit AbsentSites(const costmodel::Plan& plan) : absent_(plan.nodes.size(), false) {}
  /// All sites are absent but `present`.
  AbsentSites(const costmodel::Plan& plan, const std::vector<int>& present);

  [[nodiscard]] bool none() const { return nodes().empty(); }
  [[nodiscard]] const std::vector<bool>& by_node() const { return absent_; }
  [[nodiscard]] std::vector<costmodel::NodeId> nodes() const;
  [[nodiscard]] std::vector<std::string> list(const costmodel::Plan& plan,
                                              const platforms::Platform& platform) const;
  [[nodiscard]] std::string names(const costmodel::Plan& plan, const platforms::Platform& platform) const;
  /// The share of all sequences that belongs to the sites that are present.
  [[nodiscard]] double trained_share(const costmodel::Plan& plan) const;
  /// Leaves the absent nodes out of all rounds.
  void leave_out_of(costmodel::Plan& plan) const;

 private:
  std::vector<bool> absent_;
};

}  // namespace fomoe::trainer
