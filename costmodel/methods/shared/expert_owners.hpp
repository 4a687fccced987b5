// Averages and moves of experts that only some sites hold. The dense part is averaged among all sites. At the
// same time, each expert is averaged among its owners.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "costmodel/plan/plan.hpp"
#include "costmodel/plan/plan_summary.hpp"

namespace fomoe::costmodel {

/// Which sites hold which experts, and how experts move to others.
struct ExpertOwners {
  /// The placement while a round trains.
  std::function<Placement(std::int64_t round)> of_round;
  /// Rounds after which experts move: every T-th one but the last of the run; 0: none.
  std::int64_t migration_period = 0;
};

/// The transfers of the experts of a plan with these tensor groups, of which `first_expert` is the first
/// expert of the model. Scenario and groups must outlive it.
class ExpertTransfers {
 public:
  ExpertTransfers(const Scenario& scenario, const std::vector<TensorGroup>& groups, GroupId first_expert)
      : scenario_(&scenario), groups_(&groups), first_expert_(first_expert) {}

  /// Adds the averages of the experts of a layer among their owners. Every expert is an exchange of its own,
  /// so that its bytes can be counted; executors bundle exchanges as needed. `moe_layer` counts the layers
  /// with experts.
  void add_averages(const std::vector<Content>& contents, const Placement& placement, int moe_layer,
                    std::vector<Exchange>& exchanges) const;
  /// The operation that moves experts at the end of the round, if it is one after which they move. It starts
  /// after the operations `after`.
  [[nodiscard]] std::optional<Op> migration(const ExpertOwners& owners, std::int64_t round,
                                            std::int64_t rounds, std::vector<OpId> after) const;

  [[nodiscard]] const Scenario* scenario() const { return scenario_; }
  [[nodiscard]] const std::vector<TensorGroup>& groups() const { return *groups_; }

 private:
  [[nodiscard]] GroupId group_of(int moe_layer, int expert) const;

  const Scenario* scenario_;
  const std::vector<TensorGroup>* groups_;
  GroupId first_expert_;
};

/// Whether experts move after the round, of `rounds`.
bool moves_experts(const ExpertOwners& owners, std::int64_t round, std::int64_t rounds);

// --- as formulas ----------------------------------------------------------------------------------------

/// Sizes of the dense part and of all experts together, or of a part of them.
struct DenseAndExperts {
  double dense = 0, experts = 0;
};

/// One stage in which all sites average the dense bytes, and the O_e owners of each expert average it. The
/// bytes are those of the site that holds most experts.
Stage owners_stage(const Axes& axes, const Fixed& fixed, const DenseAndExperts& bytes);

/// Bytes that a site sends to average the model once, mean over the sites. An element has `bytes` bytes.
DenseAndExperts sent_to_owners(const Axes& axes, const Fixed& fixed, double bytes);

/// How often experts move in a round, in the mean over the rounds; 0 unless the placement is random.
double migrations_per_round(const Axes& axes, const Fixed& fixed, double rounds);
/// Adds the migrations to the summary's bytes, and as a stage if no store relays them.
void add_migrations(PlanSummary& summary, const Axes& axes, const Fixed& fixed);
/// Bytes that a site receives in a reshuffle, mean over draws, if it holds this share of all experts.
double missing_bytes_of(const Axes& axes, const Fixed& fixed, double held);

}  // namespace fomoe::costmodel
