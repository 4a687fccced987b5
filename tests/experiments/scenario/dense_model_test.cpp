// Tests [model] experts = 0: a dense model as the baseline of a mixture of experts.
#include <doctest/doctest.h>

#include "costmodel/model/flops.hpp"
#include "experiments/scenario/scenario_reader.hpp"
#include "platforms/support/input_error.hpp"

using namespace fomoe;

namespace {

costmodel::Scenario small_with(std::vector<std::string> settings) {
  settings.emplace_back("strategy.method=diloco");
  return scenario::read_scenario(FOMOE_SOURCE_DIR "/tests/ideal/two-sites.toml",
                                 {std::move(settings), {}, true});
}

std::string complaint(const std::vector<std::string>& settings) {
  try {
    (void)small_with(settings);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("experts = 0: the block is as wide as the active experts, unless d_ffn says otherwise") {
  const costmodel::Scenario mixture = small_with({"model.preset=small"});
  const costmodel::Scenario dense = small_with({"model.preset=small", "model.experts=0"});
  CHECK(dense.model.d_ffn == 2 * 128);
  CHECK(dense.model.experts == 0);
  CHECK(dense.model.name == "small-modified");
  const costmodel::ParameterCounts counts = costmodel::count_parameters(dense.model);
  CHECK(counts.expert == 0);
  CHECK(counts.router == 0);
  CHECK(counts.dense_ffn == 4 * 2 * 256 * 256);  // layers · (up and down) · d · d_ffn
  // The same active parameters and FLOPs, but for the router: layers · d · N_e.
  CHECK(costmodel::active_parameters(mixture.model) - costmodel::active_parameters(dense.model) ==
        4 * 256 * 8);
  CHECK(costmodel::flops_per_token(mixture).total() - costmodel::flops_per_token(dense).total() ==
        doctest::Approx(6.0 * 4 * 256 * 8));
  CHECK(small_with({"model.preset=small", "model.experts=0", "model.d_ffn=1024"}).model.d_ffn == 1024);
  CHECK(small_with({"model.preset=small", "model.experts=0", "model.active_experts=4"}).model.d_ffn == 512);
}

TEST_CASE("d_ffn belongs to dense models, and known parameter counts of experts do not") {
  CHECK(complaint({"model.preset=small", "model.d_ffn=512"})
            .find("model.d_ffn: got d_ffn for a model with experts; expected d_ffn only together with "
                  "experts = 0") != std::string::npos);
  CHECK(complaint({"model.preset=small", "model.experts=-1"}).find("model.experts: got -1") !=
        std::string::npos);
  CHECK(complaint({"model.dense_parameters=1e6", "model.expert_parameters=1e6", "model.experts=0"})
            .find("model.experts: got 0 together with expert_parameters") != std::string::npos);
}
