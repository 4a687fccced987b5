#include "costmodel/value/published_quality.hpp"

#include "costmodel/plan/method.hpp"
#include "costmodel/published/losses.hpp"

namespace fomoe::costmodel {

namespace {

/// Of a gradient or pseudo-gradient, which masks of secure aggregation keep whole.
double bits_on_the_wire(const Strategy& strategy) {
  return strategy.secure_aggregation ? 32 : bits_of(strategy.wire.type);
}

/// Beside the method's name: what the rows do not have; empty if nothing.
std::string variant(const Strategy& strategy, bool every_step) {
  constexpr std::int64_t kMostOverlap = 5;  // the rows have one step under way
  if (strategy.quorum) return " with strategy.quorum";
  if (strategy.skip_token) return " with strategy.skip_token";
  if (every_step) {
    if (strategy.wire.sparse()) return " with top-k gradients";
    if (bits_on_the_wire(strategy) < 16)
      return std::string(" with ") + to_string(strategy.wire.type) + " gradients";
    return "";
  }
  if (has_axis(*strategy.method, "outer_optimizer") && strategy.outer_optimizer != OuterOptimizer::nesterov)
    return std::string(" with outer_optimizer ") + to_string(strategy.outer_optimizer);
  if (has_axis(*strategy.method, "overlap_steps") && strategy.overlap_steps > kMostOverlap)
    return " with " + std::to_string(strategy.overlap_steps) + " overlapped steps";
  return "";
}

}  // namespace

LossSetting loss_setting(const ModelShape& model, const Strategy& strategy, int sites,
                         std::int64_t global_batch_sequences, std::int64_t steps) {
  const Method& method = *strategy.method;
  LossSetting setting;
  setting.parameters = static_cast<double>(active_parameters(model));
  setting.tokens = static_cast<double>(steps * global_batch_sequences * model.sequence_length);
  setting.replicas = sites;
  // A method that synchronises after every step has K = 1, whatever the scenario says.
  setting.local_steps = method.every_step || method.one_site ? 1 : strategy.local_steps;
  setting.steps = static_cast<double>(steps);
  // Training that averages exact gradients in each step has the loss of data-parallel training. DeMo keeps
  // one momentum per site instead of AdamW's moments.
  const bool adamw = method.moment_bytes_per_parameter == Method{}.moment_bytes_per_parameter;
  const bool exact = method.one_site || (method.every_step && adamw);
  const std::string other = method.one_site ? "" : variant(strategy, method.every_step);
  if (exact && other.empty()) {
    setting.method = "ddp";
  } else {
    // The paper's outer step of fomoe is DiLoCo's, and with fragments it is Streaming DiLoCo's. How many
    // sites hold an expert is a term of its own.
    const char* like = in_fragments(strategy) ? "streaming_diloco" : "diloco";
    setting.method = (method.partial_experts ? like : method.name) + other;
  }
  setting.mixture = model.active_experts < model.experts;
  setting.wire_bits = bits_on_the_wire(strategy);
  setting.density = strategy.wire.kept_share;
  setting.expert_overlap = method.partial_experts ? strategy.expert_overlap : sites;
  return setting;
}

Quality published_quality(const PublishedQuality& published, LossSetting setting) {
  setting.refuse_mixtures = published.refuse_mixtures;
  Quality quality;
  quality.source =
      "published runs of local-update training (experiments/data/published_quality.csv), all of dense models";
  PublishedLoss loss;
  loss.level = published.losses->level(setting);
  loss.nearest = published.losses->nearest(setting);
  const LossEstimate& level = loss.level;
  if (!level.known()) {
    for (const std::string& reason : level.reasons)
      quality.reason += (quality.reason.empty() ? "" : "; ") + reason;
  } else {
    quality.reason = "published runs say how far the loss is above that of data-parallel training";
    if (level.half == 0) {
      quality.equal_loss_factor = 1;  // data-parallel training itself
    } else {
      quality.equal_loss_range =
          tokens_to_equal_loss(setting.parameters, setting.tokens, level.low(), level.points, level.high());
    }
  }
  loss.setting = std::move(setting);
  quality.published = std::move(loss);
  return quality;
}

}  // namespace fomoe::costmodel
