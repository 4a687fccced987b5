// Tests the sum of the gradients of micro-batches in bf16 models.
#include "tests/trainer/support.hpp"
#include "trainer/step/gradient_pass.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

namespace {

struct Step {
  Step(const costmodel::ModelShape& shape, at::ScalarType dtype)
      : model(shape, options_of(dtype)), optimizer(model, {}), step(model, optimizer, {}) {}
  static ModelOptions options_of(at::ScalarType dtype) {
    ModelOptions options;
    options.dtype = dtype;
    return options;
  }
  [[nodiscard]] std::vector<at::Tensor> gradients() const {
    std::vector<at::Tensor> out;
    for (const Parameter& parameter : model.parameters()) out.push_back(parameter.compute.grad());
    return out;
  }
  Model model;
  AdamW optimizer;
  RecordedStep step;
  Routing routing;
};

}  // namespace

TEST_CASE("the gradients of micro-batches of a bf16 model are added up in fp32") {
  const costmodel::ModelShape shape = tiny_shape();
  constexpr std::int64_t kSequences = 40;
  Batches batches(Corpus::synthetic(shape.vocabulary, 50'000, 1), shape.sequence_length, kSequences, 0, 1);
  Step together(shape, at::kBFloat16), alone(shape, at::kBFloat16);
  GradientPass pass(together.step, batches, together.routing, {0, 0, kSequences, /*micro_batch=*/1});
  pass.micro_batches();

  std::vector<at::Tensor> sums;
  for (std::int64_t i = 0; i < kSequences; ++i) {
    (void)alone.step.micro_batch(batches.of_step(0, i, 1), alone.routing, 1.0 / kSequences);
    const std::vector<at::Tensor> one = alone.gradients();
    for (std::size_t p = 0; p < one.size(); ++p) {
      const at::Tensor wide = one[p].to(at::kFloat);
      if (i == 0) {
        sums.push_back(wide.clone());
      } else {
        sums[p] += wide;
      }
    }
    alone.model.clear_gradients();
  }
  const std::vector<at::Tensor> added = together.gradients();
  for (std::size_t p = 0; p < sums.size(); ++p) {
    CAPTURE(together.model.parameters()[p].spec.name());
    CHECK((added[p].scalar_type() == at::kFloat));
    CHECK(at::equal(added[p].to(at::kFloat), sums[p]));
  }
  // The optimiser takes them, and the copies that the next step uses follow the masters.
  together.step.update();
  for (const Parameter& parameter : together.model.parameters())
    CHECK(at::equal(parameter.compute.detach(), parameter.master.detach().to(at::kBFloat16)));
}

TEST_CASE("the load-balancing loss of a bf16 model is computed in fp32") {
  costmodel::ModelShape shape = tiny_shape();
  shape.sequence_length = 512;
  Batches batches(Corpus::synthetic(shape.vocabulary, 50'000, 1), shape.sequence_length, 8, 0, 1);
  Step bf16(shape, at::kBFloat16);
  bf16.routing.wants_balance = true;
  const Batch batch = batches.of_step(0, 0, 8);
  (void)bf16.model.loss(batch.tokens, batch.targets, &bf16.routing);
  CHECK((bf16.routing.balance.scalar_type() == at::kFloat));
}
