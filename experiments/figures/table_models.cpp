// Paper, table "Overview of the model configurations": the exact parameter counts, which the paper rounds.
#include "experiments/figures/figure.hpp"

namespace fomoe::figures {

Figure table_models(Assumptions& assume) {
  Figure figure;
  figure.columns = {"preset",
                    "d_model",
                    "layers",
                    "heads",
                    "experts_per_layer",
                    "active_experts",
                    "embedding_parameters",
                    "attention_parameters",
                    "router_parameters",
                    "expert_parameters",
                    "parameters_without_norms",
                    "norm_parameters",
                    "total_parameters",
                    "sparse_share",
                    "printed_in_the_paper"};
  const char* const printed[] = {"54M", "153M", "1.8B", "13.3B", "104B"};
  std::size_t row = 0;
  for (const costmodel::ModelShape& shape : costmodel::presets()) {
    const costmodel::ParameterCounts counts = costmodel::count_parameters(shape);
    const auto experts = static_cast<double>(counts.expert);
    figure.rows.push_back({shape.name, shape.d_model, shape.layers, shape.heads, shape.experts,
                           shape.active_experts, counts.embedding, counts.attention, counts.router,
                           counts.expert, counts.total() - counts.norm, counts.norm, counts.total(),
                           experts / (static_cast<double>(counts.embedding + counts.attention) + experts),
                           std::string(row < std::size(printed) ? printed[row] : "")});
    ++row;
  }
  assume.state("sparse_share", "experts ÷ (embedding + attention + experts)");
  assume.state("norms", "two scales per branch, one for the embedding and one at the end: d·(4L + 2)");
  figure.notes = {"The paper's totals omit norm scales; norm scales are parameters and are counted here."};
  return figure;
}

}  // namespace fomoe::figures
