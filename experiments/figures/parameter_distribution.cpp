// Paper, figure "Parameter distribution trends": at a ratio of width d to number of layers L of 32, the share
// of expert parameters grows from 22 % at 150M parameters to more than 60 % at 26B.
#include "experiments/figures/figure.hpp"

namespace fomoe::figures {

Figure parameter_distribution(Assumptions& assume) {
  Figure figure;
  const std::int64_t ratio = assume.count("width_to_depth", 32, 256);
  figure.columns = {"d_model",
                    "layers",
                    "experts_per_layer",
                    "embedding_parameters",
                    "attention_parameters",
                    "norm_parameters",
                    "router_parameters",
                    "expert_parameters",
                    "total_parameters",
                    "sparse_share",
                    "sparse_share_with_router"};
  for (const std::int64_t d_model : {256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192}) {
    const costmodel::ModelShape shape = family_member(assume, d_model, d_model / ratio);
    const costmodel::ParameterCounts counts = costmodel::count_parameters(shape);
    const auto experts = static_cast<double>(counts.expert);
    const auto router = static_cast<double>(counts.router);
    const auto others = static_cast<double>(counts.embedding + counts.attention);
    const double share = experts / (others + experts);
    figure.rows.push_back({d_model, shape.layers, shape.experts, counts.embedding, counts.attention,
                           counts.norm, counts.router, counts.expert, counts.total(), share,
                           (experts + router) / (others + experts + router)});
    if (d_model == 512) figure.findings["sparse_share_at_150M"] = share;
    if (d_model == 4096) figure.findings["sparse_share_at_26B"] = share;
  }
  assume.state("layers", "d_model ÷ width_to_depth");
  assume.state("family", "heads of width 64, N_e = 4·d/128 experts of width 128, k = N_e/4, tied embeddings");
  assume.state("sparse_share", "experts ÷ (embedding + attention + experts)");
  figure.notes = {
      "The paper counts routers as sparse; a separate column has the share that includes routers.",
      "The paper's text states about 20 % at 150M; the counted share is 22 %."};
  return figure;
}

}  // namespace fomoe::figures
