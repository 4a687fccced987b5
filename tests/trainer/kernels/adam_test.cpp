// Compares AdamW by our own kernel with LibTorch's, and the kernel on the emulated GPU, in builds with CUDA,
// with the CPU's loop.
#include "trainer/kernels/adam/adam.hpp"

#include "tests/trainer/support.hpp"
#include "trainer/optimizer/adamw.hpp"

#ifdef FOMOE_CUDA
#include "emulated/kernels/adam/adam.hpp"
namespace emulated = fomoe::emulated;
#endif

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

namespace {

/// Tensors with and without whole packs: more of each kind than one launch takes, and some of them for
/// several blocks. One tensor is empty, and one is not aligned.
AdamTensors some_tensors(at::ScalarType type) {
  at::manual_seed(12);
  const at::ScalarType master = type == at::kDouble ? at::kDouble : at::kFloat;
  AdamTensors out;
  for (std::int64_t i = 0; i < 150; ++i) {
    const std::int64_t n = i == 7       ? 0
                           : i == 8     ? 40'000
                           : i == 9     ? 40'001
                           : i % 2 == 0 ? 4 * i + 4
                                        : 2 * i + 1;
    out.masters.push_back(i == 10 ? at::randn({n + 1}, master).narrow(0, 1, n) : at::randn({n}, master));
    out.moment1.push_back(at::randn({n}, master) * 0.1);
    out.moment2.push_back(at::rand({n}, master) * 0.01);
    out.gradients.push_back(at::randn({n}, at::kDouble).to(type));
    out.copies.push_back(type == at::kBFloat16 ? at::zeros({n}, type) : at::Tensor());
    out.updates.push_back(at::full({}, static_cast<double>(1 + i % 5), at::kFloat));
  }
  return out;
}

AdamTensors clone(const AdamTensors& tensors) {
  AdamTensors out = tensors;
  for (auto* list : {&out.masters, &out.moment1, &out.moment2, &out.copies}) {
    for (at::Tensor& tensor : *list) {
      if (!tensor.defined()) continue;
      const at::Tensor kept = tensor;  // keeps the tensor's distance from an aligned address
      tensor = at::empty({kept.numel() + kept.storage_offset()}, kept.options())
                   .narrow(0, kept.storage_offset(), kept.numel())
                   .view(kept.sizes())
                   .copy_(kept);
    }
  }
  return out;
}

/// Tensors with a part for each expert: as rows, with and without whole packs and for several blocks; as
/// columns, up to more than a block has threads; as a dimension in the middle; and a single expert. Experts
/// have unequal counts, and some of them warm up. Without packs, gradients need not be aligned.
AdamTensors expert_tensors(at::ScalarType gradients, bool bf16_copies) {
  at::manual_seed(13);
  const at::ScalarType master = gradients == at::kDouble ? at::kDouble : at::kFloat;
  AdamTensors out;
  const std::vector<std::pair<std::vector<std::int64_t>, std::int64_t>> shapes = {
      {{4, 8, 4}, 0}, {{3, 5, 3}, 0},  {{3, 17'000}, 0}, {{5, 16'387}, 0}, {{7, 4}, 1},     {{9, 300}, 1},
      {{600, 32}, 1}, {{3, 4, 12}, 1}, {{2, 3, 5}, 1},   {{1, 50}, 0},     {{64, 1}, 1},    {{6}, 0},
      {{1, 700}, 1},  {{130, 130}, 0}, {{130, 130}, 1},  {{2, 20'000}, 1}, {{20'000, 2}, 0}};
  for (const auto& [sizes, dim] : shapes) {
    const std::int64_t experts = sizes[static_cast<std::size_t>(dim)];
    out.masters.push_back(at::randn(sizes, master));
    out.moment1.push_back(at::randn(sizes, master) * 0.1);
    out.moment2.push_back(at::rand(sizes, master) * 0.01);
    out.gradients.push_back(at::randn(sizes, at::kDouble).to(gradients));
    out.copies.push_back(bf16_copies ? at::zeros(sizes, at::kBFloat16) : at::Tensor());
    out.updates.push_back(1 + at::arange(experts, at::kFloat) % 7);
    const at::Tensor ages = 1 + at::arange(experts, at::kFloat) % 5;
    out.ages.push_back(at::where(ages == 3, at::full_like(ages, INFINITY), ages));
    out.expert_dims.push_back(dim);
  }
  return out;
}

const at::Tensor kRate = at::full({}, 0.01, at::kDouble);
constexpr double kScale = 0.5, kBeta1 = 0.9, kBeta2 = 0.95, kAdamEpsilon = 1e-8, kDecay = 0.1, kWarmup = 4;

}  // namespace

TEST_CASE("adam_step is LibTorch's fused AdamW, and its copies are the masters rounded") {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    CAPTURE(c10::toString(type));
    const AdamTensors start = some_tensors(type), ours = clone(start), theirs = clone(start);
    adam_step(ours, {kRate, kScale, kBeta1, kBeta2, kAdamEpsilon, kDecay});
    std::vector<at::Tensor> gradients, masters = theirs.masters, m = theirs.moment1, v = theirs.moment2;
    for (const at::Tensor& gradient : theirs.gradients)
      gradients.push_back(gradient.to(theirs.masters[0].scalar_type()));
    at::_fused_adamw_(masters, gradients, m, v, {}, theirs.updates, 0.01 * kScale, kBeta1, kBeta2, kDecay,
                      kAdamEpsilon, false, false);
    // The tolerance is four roundings of values below 8.
    const double tolerance = 4 * (type == at::kDouble ? 0x1p-50 : 0x1p-21);
    for (std::size_t i = 0; i < masters.size(); ++i) {
      CAPTURE(i);
      if (masters[i].numel() == 0) continue;
      CHECK(largest_difference(ours.masters[i], masters[i]) < tolerance);
      CHECK(largest_difference(ours.masters[i], start.masters[i]) > 1e-4);
      CHECK(largest_difference(ours.moment1[i], m[i]) < tolerance);
      CHECK(largest_difference(ours.moment2[i], v[i]) < tolerance);
      if (type == at::kBFloat16) CHECK(at::equal(ours.copies[i], ours.masters[i].to(at::kBFloat16)));
    }
  }
}

#ifdef FOMOE_CUDA
TEST_CASE("emulated adam_step: every element of every tensor once, by packs and one by one") {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    CAPTURE(c10::toString(type));
    const AdamTensors cpu = some_tensors(type), gpu = clone(cpu);
    adam_step(cpu, {kRate, kScale, kBeta1, kBeta2, kAdamEpsilon, kDecay});
    emulated::adam_step({gpu.masters, gpu.moment1, gpu.moment2, gpu.gradients, gpu.copies, gpu.updates},
                        {kRate, kScale, kBeta1, kBeta2, kAdamEpsilon, kDecay});
    for (std::size_t i = 0; i < cpu.masters.size(); ++i) {
      CAPTURE(i);
      if (cpu.masters[i].numel() == 0) continue;
      // The expressions are the same, but a compiler may contract them in one of the two: one rounding of
      // values below 8.
      CHECK(largest_difference(gpu.masters[i], cpu.masters[i]) <= 0x1p-21);
      CHECK(largest_difference(gpu.moment1[i], cpu.moment1[i]) <= 0x1p-21);
      CHECK(largest_difference(gpu.moment2[i], cpu.moment2[i]) <= 0x1p-21);
      if (type == at::kBFloat16) CHECK(at::equal(gpu.copies[i], gpu.masters[i].to(at::kBFloat16)));
    }
  }
}
#endif

TEST_CASE("adam_step: each expert has its own counts, as rows, columns or in between") {
  for (const auto& [gradients, copies] : {std::pair(at::kDouble, false), std::pair(at::kFloat, false),
                                          std::pair(at::kBFloat16, true), std::pair(at::kFloat, true)}) {
    CAPTURE(c10::toString(gradients));
    const AdamTensors start = expert_tensors(gradients, copies);
    std::vector<AdamTensors> results = {clone(start)};
    adam_step(results[0], {kRate, kScale, kBeta1, kBeta2, kAdamEpsilon, kDecay, kWarmup});
#ifdef FOMOE_CUDA
    const AdamTensors& gpu = results.emplace_back(clone(start));
    emulated::adam_step({gpu.masters, gpu.moment1, gpu.moment2, gpu.gradients, gpu.copies, gpu.updates,
                         gpu.ages, gpu.expert_dims},
                        {kRate, kScale, kBeta1, kBeta2, kAdamEpsilon, kDecay, kWarmup});
#endif
    // The tolerance is four roundings of values below 8; of 32 after cancellation in the reference.
    const double tolerance = 16 * (gradients == at::kDouble ? 0x1p-50 : 0x1p-21);
    for (std::size_t i = 0; i < start.masters.size(); ++i) {
      CAPTURE(start.masters[i].sizes());
      // The formulas with counts that are broadcast along the expert's dimension.
      std::vector<std::int64_t> broadcast(static_cast<std::size_t>(start.masters[i].dim()), 1);
      broadcast[static_cast<std::size_t>(start.expert_dims[i])] = -1;
      const at::Tensor g = start.gradients[i].to(at::kDouble),
                       t = start.updates[i].to(at::kDouble).view(broadcast),
                       rate = 0.01 * kScale *
                              (start.ages[i].to(at::kDouble) / kWarmup).clamp_max(1).view(broadcast),
                       m = kBeta1 * start.moment1[i].to(at::kDouble) + (1 - kBeta1) * g,
                       v = kBeta2 * start.moment2[i].to(at::kDouble) + (1 - kBeta2) * g * g,
                       root = v.sqrt() / (1 - at::pow(kBeta2, t)).sqrt() + kAdamEpsilon,
                       theta = (1 - rate * kDecay) * start.masters[i].to(at::kDouble) -
                               rate / (1 - at::pow(kBeta1, t)) * m / root;
      for (const AdamTensors& got : results) {
        CAPTURE((&got == &results[0]));
        CHECK(largest_difference(got.masters[i], theta) < tolerance);
        CHECK(largest_difference(got.moment1[i], m) < tolerance);
        CHECK(largest_difference(got.moment2[i], v) < tolerance);
        if (copies) CHECK(at::equal(got.copies[i], got.masters[i].to(at::kBFloat16)));
      }
    }
  }
}

TEST_CASE("adam_step refuses counts that do not fit the experts") {
  const AdamTensors good = expert_tensors(at::kFloat, false);
  const AdamRates rates{kRate, kScale, kBeta1, kBeta2, kAdamEpsilon, kDecay, kWarmup};
  AdamTensors other_dim = good, few_ages = good, fp64 = good;
  other_dim.expert_dims[0] = 1;
  few_ages.ages[0] = few_ages.ages[0].narrow(0, 0, 2);
  fp64.updates[0] = fp64.updates[0].to(at::kDouble);
  for (const AdamTensors* bad : {&other_dim, &few_ages, &fp64})
    CHECK_THROWS_AS(adam_step(*bad, rates), c10::Error);
}

TEST_CASE("a model trains alike by either kernel, also with experts of unequal age, in fp64 and bf16") {
  for (const at::ScalarType type : {at::kDouble, at::kBFloat16}) {
    CAPTURE(c10::toString(type));
    const auto trained = [&](Kernels kernels) {
      ModelOptions options;
      options.dtype = type;
      options.kernels = kernels;
      Model model(tiny_shape(), options);
      AdamWOptions adam;
      adam.learning_rate = 0.01;
      adam.weight_decay = 0.1;
      AdamW optimizer(model, adam);
      at::manual_seed(2);
      const std::size_t untouched = parameter_index(1, Role::qkv);
      const at::Tensor as_it_was = model.parameters()[untouched].master.detach().clone();
      for (int step = 0; step < 6; ++step) {
        const at::NoGradGuard no_grad;
        if (step == 2) optimizer.set_experts(0, {{2, -1}, {0, 0}, {2, -1}, {2, -1}});
        if (step == 4) optimizer.set_experts(0, std::vector<ExpertSteps>(4, ExpertSteps{4, -1}));
        for (const Parameter& parameter : model.parameters())
          parameter.compute.mutable_grad() = at::randn(parameter.master.sizes(), at::kDouble).to(type);
        model.parameters()[untouched].compute.mutable_grad().reset();
        optimizer.step();
        for (const Parameter& parameter : model.parameters())
          CHECK(at::equal(parameter.compute.detach(), parameter.master.detach().to(type)));
      }
      CHECK(at::equal(model.parameters()[untouched].master, as_it_was));
      CHECK(optimizer.steps()[untouched].item<double>() == 0);
      std::vector<at::Tensor> out;
      for (const Parameter& parameter : model.parameters()) {
        out.push_back(parameter.master.detach().clone());
      }
      for (const at::Tensor& moment : optimizer.moment2()) out.push_back(moment.clone());
      for (const at::Tensor& steps : optimizer.steps()) out.push_back(steps.clone());
      return out;
    };
    const auto own = trained(Kernels::own), library = trained(Kernels::library);
    // The tolerance is four roundings of values below 2 in each of six steps.
    const double tolerance = 6 * 4 * (type == at::kDouble ? 0x1p-52 : 0x1p-23);
    for (std::size_t i = 0; i < own.size(); ++i) {
      CAPTURE(i);
      CHECK(largest_difference(own[i], library[i]) < tolerance);
    }
  }
}
