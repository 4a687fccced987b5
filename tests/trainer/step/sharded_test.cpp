// Tests that a sharded state of the optimiser (ZeRO stage 1) updates as the whole state does, to the last
// bit, and that checkpoints see the whole state.
#include "tests/trainer/support.hpp"
#include "trainer/execution/worker.hpp"
#include "trainer/optimizer/adamw.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

namespace {

costmodel::ModelShape shape() {
  costmodel::ModelShape shape = tiny_shape();
  shape.d_model = 32;  // parts of tensors then are as long as vectors of the processor, as in real models
  shape.experts = 5;   // parts of two and three experts
  return shape;
}

WorkerOptions options_of(Kernels kernels, at::ScalarType dtype, int shard, int shards) {
  WorkerOptions options;
  options.model.kernels = kernels;
  options.model.dtype = dtype;
  options.inner.learning_rate = 0.01;
  options.inner.restart_warmup_steps = 3;
  options.inner.shard = shard;
  options.inner.shards = shards;
  return options;
}

void gradient(Model& model, const at::Tensor& tokens) {
  model.clear_gradients();
  model.loss(tokens, tokens.roll(-1, 1)).backward();
}

/// What SiteRanks::share_rows does.
template <class Tensors>
void share(std::vector<std::unique_ptr<Worker>>& workers, const Tensors& tensors_of) {
  const at::NoGradGuard no_grad;
  const int shards = static_cast<int>(workers.size());
  std::vector<std::vector<at::Tensor>> all;
  for (auto& worker : workers) all.push_back(tensors_of(*worker));
  for (int to = 0; to < shards; ++to) {
    for (int from = 0; from < shards; ++from) {
      for (std::size_t i = 0; i < all[0].size(); ++i) {
        const Rows rows = rows_of_shard(all[0][i], from, shards);
        rows.of(all[static_cast<std::size_t>(to)][i]).copy_(rows.of(all[static_cast<std::size_t>(from)][i]));
      }
    }
  }
}

std::vector<at::Tensor> masters(Worker& worker) {
  std::vector<at::Tensor> out;
  for (const Parameter& parameter : worker.model().parameters()) out.push_back(parameter.master.detach());
  return out;
}

std::vector<at::Tensor> moments(Worker& worker) {
  std::vector<at::Tensor> out;
  for (const auto& [name, tensor] : worker.state()) {
    if (name.find(".moment") != std::string::npos) out.push_back(tensor);
  }
  return out;
}

}  // namespace

TEST_CASE("shards of the optimiser's state make the updates of the whole state, bit for bit") {
  for (const Kernels kernels : {Kernels::library, Kernels::own}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kDouble}) {
      for (const int shards : {2, 3}) {
        CAPTURE(static_cast<int>(kernels));
        CAPTURE(c10::toString(dtype));
        CAPTURE(shards);
        Worker whole(shape(), {}, options_of(kernels, dtype, 0, 1));
        std::vector<std::unique_ptr<Worker>> parts;
        std::int64_t elements = 0, of_whole = 0;
        for (int shard = 0; shard < shards; ++shard) {
          parts.push_back(std::make_unique<Worker>(shape(), std::vector<costmodel::TensorGroup>(),
                                                   options_of(kernels, dtype, shard, shards)));
          for (const at::Tensor& moment : parts.back()->inner().moment1()) elements += moment.numel();
        }
        for (const at::Tensor& moment : whole.inner().moment1()) of_whole += moment.numel();
        CHECK(elements == of_whole);  // together they have each moment once

        at::manual_seed(5);
        for (int step = 0; step < 4; ++step) {
          const at::Tensor tokens = at::randint(17, {2, 6}, at::kLong);
          if (step == 2) {  // an expert arrives from another site: its count differs from the others'
            std::vector<ExpertSteps> counts(5, {2, -1});
            counts[3] = {0, 0};
            whole.inner().set_experts(1, counts);
            for (auto& part : parts) part->inner().set_experts(1, counts);
          }
          gradient(whole.model(), tokens);
          whole.inner().step();
          for (auto& part : parts) {
            gradient(part->model(), tokens);
            part->inner().step();
          }
          share(parts, masters);
          for (auto& part : parts) part->model().refresh_compute_weights();
          for (std::size_t i = 0; i < whole.model().parameters().size(); ++i) {
            CAPTURE(whole.model().parameters()[i].spec.name());
            for (auto& part : parts)
              CHECK(at::equal(part->model().parameters()[i].master, whole.model().parameters()[i].master));
          }
        }

        // The whole state for a checkpoint, and back
        CHECK_THROWS_AS((void)parts[1]->state(), std::logic_error);
        for (auto& part : parts) part->open_shards();
        share(parts, moments);
        const std::vector<at::Tensor> expected = moments(whole), put_together = moments(*parts[1]);
        REQUIRE(expected.size() == put_together.size());
        for (std::size_t i = 0; i < expected.size(); ++i) CHECK(at::equal(expected[i], put_together[i]));
        const at::NoGradGuard no_grad;
        for (at::Tensor& moment : moments(*parts[1])) moment.add_(1);  // as if it was loaded from a file
        parts[1]->close_shards();
        const at::Tensor& embedding = whole.inner().moment1().front();
        CHECK(at::equal(parts[1]->inner().moment1().front(),
                        rows_of_shard(embedding, 1, shards).of(embedding) + 1));
      }
    }
  }
}
