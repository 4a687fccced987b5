// Paper, figure "total training FLOPs versus expert overlap": a small model on 16 workers (left) and a large
// model on 32 workers (right). The figure also shows the FLOPs that partial replicas avoid.
#include "costmodel/model/flops.hpp"
#include "experiments/figures/figure.hpp"

namespace fomoe::figures {

Figure flops_scaling(Assumptions& assume) {
  Figure figure;
  figure.columns = {"panel",         "d_model",    "layers",      "sites",         "expert_overlap",
                    "local_experts", "accounting", "total_flops", "avoided_flops", "avoided_share"};
  struct Panel {
    const char* name;
    std::int64_t d_model, layers;
    int sites;
  };
  const auto tokens = static_cast<double>(assume.count("tokens", 640LL * 1024 * 2048));
  const bool skip_token = assume.flag("skip_token", true);
  for (const Panel& panel : {Panel{"left", 512, 16, 16}, Panel{"right", 8192, 512, 32}}) {
    const costmodel::ModelShape shape = family_member(assume, panel.d_model, panel.layers);
    const auto total = [&](double local_experts, costmodel::FlopsAccounting accounting) {
      return tokens * costmodel::flops_per_token(shape, local_experts, skip_token, accounting).total();
    };
    for (const auto& [name, accounting] : {std::pair{"paper", costmodel::FlopsAccounting::paper},
                                           std::pair{"mechanism", costmodel::FlopsAccounting::mechanism}}) {
      const double full = total(static_cast<double>(shape.experts), accounting);
      for (int overlap = 1; overlap <= panel.sites; overlap *= 2) {
        const std::int64_t local_experts = shape.experts * overlap / panel.sites;
        const double flops = total(static_cast<double>(local_experts), accounting);
        figure.rows.push_back({std::string(panel.name), panel.d_model, panel.layers,
                               static_cast<std::int64_t>(panel.sites), static_cast<std::int64_t>(overlap),
                               local_experts, std::string(name), flops, full - flops, (full - flops) / full});
        if (overlap == 1)
          figure.findings["avoided_share_" + std::string(panel.name) + "_" + name] = (full - flops) / full;
      }
    }
  }
  assume.state(
      "tokens_from",
      "640 batches of 1024 sequences of 2048 tokens; the paper's figure states no budget, which only scales "
      "the result");
  assume.state("dense_flops",
               "6 per matrix parameter and token, with the unembedding and without the embedding look-up");
  assume.state("attention_flops", "12·L·d·s per token, over the whole square of a sequence");
  assume.state("paper", "σ_st · min(k, N_le)/k of the experts with σ_st = N_le/N_e, N_le/N_e of the router");
  assume.state("mechanism",
               "N_le/N_e of the experts and the whole router, because ghost assignments are dropped");
  figure.notes = {
      "The paper does not define F_dense; the assumptions state the definition used here.",
      "The paper defines σ_st twice: N_le/N_e in the main text, and min(1, N_le/k) in the appendix. This "
      "figure uses the main text's.",
      "With the accounting `paper`, the curve bends where N_le < k, because min(k, N_le)/k multiplies σ_st."};
  return figure;
}

}  // namespace fomoe::figures
