// Tests on a GPU what the CPU tests cannot: our routing kernel, LibTorch's grouped product in bf16, and the
// whole model on both devices.
#include <sstream>

#include "tests/trainer/support.hpp"
#include "trainer/kernels/route/route.hpp"
#include "trainer/model/grouped_product.hpp"
#include "trainer/optimizer/adamw.hpp"
#include "trainer/step/profile.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

namespace {

costmodel::ModelShape small_vocabulary() {
  costmodel::ModelShape shape = *costmodel::find_preset("small");
  shape.vocabulary = 1000;
  shape.sequence_length = 64;
  return shape;
}

}  // namespace

TEST_CASE("routing: the kernel equals the reference exactly") {
  at::manual_seed(3);
  for (const std::int64_t experts : {1, 2, 31, 32, 33, 128}) {
    for (const std::int64_t slots : {0, 1, 31, 512, 513, 100'000, 1'000'003}) {
      CAPTURE(experts);
      CAPTURE(slots);
      const at::Tensor expert = at::randint(experts + 1, {slots}, at::kLong);
      const Route expected = route_reference(expert, experts), got = route(expert.cuda(), experts);
      CHECK(at::equal(got.permutation.cpu(), expected.permutation));
      CHECK(at::equal(got.position.cpu(), expected.position));
      CHECK(at::equal(got.ends.cpu(), expected.ends));
    }
  }
}

TEST_CASE("grouped products in bf16, with an empty group and ghosts' rows") {
  at::manual_seed(4);
  const at::Tensor rows = at::randn({64, 32}).to(at::kBFloat16),
                   weights = at::randn({3, 32, 16}).to(at::kBFloat16);
  const at::Tensor right = at::randn({64, 16}).to(at::kBFloat16), ends = at::tensor({24, 24, 48}, at::kInt);
  const at::Tensor by_rows = grouped_rows(rows.cuda(), weights.cuda(), ends.cuda()).cpu();
  const at::Tensor outer = grouped_outer(rows.cuda(), right.cuda(), ends.cuda()).cpu();
  // bf16 keeps 8 bits: sums of 32 products of order 1 have an error of about 32^0.5·2^-8.
  CHECK(largest_difference(by_rows.narrow(0, 0, 48), grouped_rows(rows, weights, ends).narrow(0, 0, 48)) <
        0.2);
  CHECK(largest_difference(outer, grouped_outer(rows, right, ends)) < 0.2);
  CHECK(outer[1].abs().max().item<double>() == 0);
}

TEST_CASE("loss and gradients in bf16 on the GPU are those of fp32 on the CPU, to bf16's precision") {
  for (const bool skip_token : {false, true}) {
    CAPTURE(skip_token);
    ModelOptions options;
    options.experts.local.assign(4, {0, 3, 5});
    options.experts.skip_token = skip_token;
    Model cpu(small_vocabulary(), options);
    options.device = at::Device(at::kCUDA, 0);
    options.dtype = at::kBFloat16;
    Model gpu(small_vocabulary(), options);
    at::manual_seed(6);
    const at::Tensor tokens = at::randint(1000, {2, 64}, at::kLong), targets = tokens.roll(-1, 1);
    const at::Tensor expected = cpu.loss(tokens, targets), got = gpu.loss(tokens.cuda(), targets.cuda());
    CHECK(got.item<double>() == doctest::Approx(expected.item<double>()).epsilon(0.01));
    expected.backward();
    got.backward();
    for (std::size_t i = 0; i < cpu.parameters().size(); ++i) {
      CAPTURE(cpu.parameters()[i].spec.name());
      const at::Tensor g = gpu.parameters()[i].compute.grad().cpu().to(at::kFloat),
                       e = cpu.parameters()[i].compute.grad();
      CHECK(g.isfinite().all().item<bool>());
      // Routing differs for tokens whose second and third gates are equal within the precision of bf16, so
      // the test compares directions.
      const double cosine = ((g * e).sum() / (g.norm() * e.norm())).item<double>();
      CHECK(cosine > 0.9);
    }
  }
}

TEST_CASE("our own kernels compute what LibTorch's operators do: loss and all gradients, in fp32 and bf16") {
  for (const bool skip_token : {false, true}) {
    for (const auto& [dtype, least] : {std::pair{at::kFloat, 0.9999}, std::pair{at::kBFloat16, 0.9}}) {
      CAPTURE(skip_token);
      CAPTURE(c10::toString(dtype));
      ModelOptions options;
      options.device = at::Device(at::kCUDA, 0);
      options.dtype = dtype;
      options.experts.local.assign(4, {0, 3, 5});
      options.experts.skip_token = skip_token;
      options.kernels = Kernels::library;
      const Model library(small_vocabulary(), options);
      options.kernels = Kernels::own;
      const Model own(small_vocabulary(), options);
      at::manual_seed(6);
      const at::Tensor tokens = at::randint(1000, {2, 64}, at::kLong).cuda(), targets = tokens.roll(-1, 1);
      const at::Tensor expected = library.loss(tokens, targets), got = own.loss(tokens, targets);
      CHECK(got.item<double>() == doctest::Approx(expected.item<double>()).epsilon(0.01));
      expected.backward();
      got.backward();
      for (std::size_t i = 0; i < own.parameters().size(); ++i) {
        CAPTURE(own.parameters()[i].spec.name());
        const at::Tensor g = own.parameters()[i].compute.grad().to(at::kDouble),
                         e = library.parameters()[i].compute.grad().to(at::kDouble);
        // Compares directions, for the reason above.
        CHECK(((g * e).sum() / (g.norm() * e.norm())).item<double>() > least);
      }
    }
  }
}

TEST_CASE("training learns a repeated batch") {
  ModelOptions options;
  options.device = at::Device(at::kCUDA, 0);
  options.dtype = at::kBFloat16;
  Model model(small_vocabulary(), options);
  AdamW optimizer(model, {});
  const at::Tensor tokens = at::randint(1000, {2, 64}, at::TensorOptions(at::kLong).device(options.device));
  double first = 0, last = 0;
  for (int step = 0; step < 30; ++step) {
    const at::Tensor loss = model.loss(tokens, tokens.roll(-1, 1));
    last = loss.item<double>();
    if (step == 0) first = last;
    loss.backward();
    optimizer.step();
  }
  CHECK(last < first - 0.5);
}

TEST_CASE("a profile is timed with the GPU's events") {
  ProfileOptions options;
  options.model = small_vocabulary();
  options.local_experts = {4, 8};
  options.micro_batch_sequences = {2};
  options.device = DeviceKind::cuda;
  options.bf16 = true;
  options.steps = 5;
  std::ostringstream progress;
  const costmodel::StepProfile profile = measure_profile(options, progress);
  CHECK(profile.device_kind == "cuda");
  for (const costmodel::ProfilePoint& point : profile.points) {
    CHECK(point.samples.size() == 5);
    CHECK(point.peak_memory_bytes > 0);
    for (const costmodel::StepSample& sample : point.samples) {
      CHECK(sample.forward_s > 0);
      CHECK(sample.backward_s > 0);
      CHECK(sample.optimizer_s > 0);
    }
  }
}

TEST_CASE("the peak memory of a profile's point does not depend on the points before it") {
  ProfileOptions options;
  options.model = small_vocabulary();
  options.local_experts = {8, 8, 8};
  options.micro_batch_sequences = {2};
  options.device = DeviceKind::cuda;
  options.bf16 = true;
  options.steps = 3;
  options.launches = Launches::by_graph;
  std::ostringstream progress;
  const std::vector<costmodel::ProfilePoint> points = measure_profile(options, progress).points;
  CHECK(points[1].peak_memory_bytes == points[2].peak_memory_bytes);
  // What the first use of the device allocates is far smaller than the workspace of a stream, 32 MiB.
  CHECK(std::abs(points[0].peak_memory_bytes - points[2].peak_memory_bytes) < 4 << 20);
}
