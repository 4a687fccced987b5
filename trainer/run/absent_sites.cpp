#include "trainer/run/absent_sites.hpp"

#include <algorithm>

#include "costmodel/plan/absences.hpp"
#include "costmodel/plan/method.hpp"
#include "platforms/support/input_error.hpp"
#include "trainer/shared_folder/session.hpp"

namespace fomoe::trainer {

using costmodel::NodeId;
using costmodel::NodeKind;

namespace {

bool goes_on(const costmodel::Plan& plan) {
  return std::any_of(plan.classes.begin(), plan.classes.end(), [&](const costmodel::RoundClass& kind) {
    const costmodel::RoundPlan round = plan.round(kind.round_at(0));
    return std::any_of(round.ops.begin(), round.ops.end(),
                       [](const costmodel::Op& op) { return op.detached; });
  });
}

}  // namespace

std::vector<bool> needed_sites(const costmodel::Plan& plan, int sites) {
  std::vector<bool> needed(static_cast<std::size_t>(sites), false);
  const std::vector<bool> nodes = costmodel::indispensable_nodes(plan);
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const costmodel::Node& of = plan.nodes[node];
    if (nodes[node] || of.kind != NodeKind::worker) needed[static_cast<std::size_t>(of.site)] = true;
  }
  return needed;
}

void check_drops(const costmodel::Method& method, const costmodel::Plan& plan,
                 const std::vector<int>& processes, const std::string& transport) {
  const auto refuse = [](const std::string& got, const std::string& expected, const std::string& example) {
    throw UsageError("trainer.on_lost_site: got drop with " + got + "; expected " + expected +
                     "; for example --set " + example);
  };
  if (has_store(plan))
    refuse("an exchange through a store, in which the objects of a lost site would be missing",
           "a collective among the sites", "strategy.collective=direct");
  if (method.own_embedding)
    refuse("method " + method.name +
               ", whose sites keep embeddings of their own, which no other site could give back",
           "a method that averages the embedding", "strategy.method=diloco");
  const std::string operation = costmodel::needs_all_nodes(plan);
  if (operation == "migration")
    refuse("a placement whose experts change their sites", "a placement that stays",
           "strategy.placement=fixed");
  if (!operation.empty())
    refuse("a plan whose operation \"" + operation + "\" needs all sites",
           "a collective among all sites at once", "strategy.collective=direct");
  if (goes_on(plan))
    refuse("transfers that continue into the next round, which a site that comes back has no part in",
           "transfers that end within their round", "strategy.overlap_steps=0");
  if (*std::max_element(processes.begin(), processes.end()) > 1)
    refuse("sites with several processes", "one process for each site", "compute.gpus_per_site=1");
  if (transport != "gloo")
    refuse("trainer.transport=" + transport, "gloo, since NCCL cannot go on without a rank",
           "trainer.transport=gloo");
}

AbsentSites::AbsentSites(const costmodel::Plan& plan, const std::vector<int>& present) : AbsentSites(plan) {
  for (std::size_t node = 0; node < absent_.size(); ++node)
    absent_[node] = std::find(present.begin(), present.end(), plan.nodes[node].site) == present.end();
}

std::vector<NodeId> AbsentSites::nodes() const {
  std::vector<NodeId> out;
  for (std::size_t node = 0; node < absent_.size(); ++node) {
    if (absent_[node]) out.push_back(static_cast<NodeId>(node));
  }
  return out;
}

std::vector<std::string> AbsentSites::list(const costmodel::Plan& plan,
                                           const platforms::Platform& platform) const {
  std::vector<std::string> names;
  for (const NodeId node : nodes()) {
    const int site = plan.nodes[static_cast<std::size_t>(node)].site;
    names.push_back(platform.sites[static_cast<std::size_t>(site)].name);
  }
  return names;
}

std::string AbsentSites::names(const costmodel::Plan& plan, const platforms::Platform& platform) const {
  std::string text;
  for (const std::string& name : list(plan, platform)) text += (text.empty() ? "" : ", ") + name;
  return text;
}

double AbsentSites::trained_share(const costmodel::Plan& plan) const {
  double present = 0, all = 0;
  for (std::size_t node = 0; node < absent_.size(); ++node) {
    all += plan.nodes[node].sequences;
    if (!absent_[node]) present += plan.nodes[node].sequences;
  }
  return present / all;
}

void AbsentSites::leave_out_of(costmodel::Plan& plan) const {
  plan.round = [round = plan.round, absent = absent_](std::int64_t index) {
    return costmodel::without(round(index), absent);
  };
}

std::optional<LostSites> lost_sites(const scenario::TrainerSettings& settings, const costmodel::Plan& plan,
                                    int sites, bool resumes) {
  if (settings.on_lost_site == "stop") return std::nullopt;
  LostSites lost{settings.lost_site_timeout_s};
  if (settings.on_lost_site == "drop") {
    lost.needed = needed_sites(plan, sites);
    // A new run waits for all sites.
    lost.drop_after_s = resumes ? settings.drop_after_s : std::numeric_limits<double>::infinity();
  }
  return lost;
}

}  // namespace fomoe::trainer
