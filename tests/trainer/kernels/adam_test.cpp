// Compares AdamW by our own kernel with LibTorch's, and the kernel on the emulated GPU with the CPU's loop.
#include "trainer/kernels/adam/adam.hpp"

#include "emulated/kernels/adam/adam.hpp"
#include "tests/trainer/support.hpp"
#include "trainer/optimizer/adamw.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace emulated = fomoe::emulated;

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
                   .copy_(kept);
    }
  }
  return out;
}

const at::Tensor kRate = at::full({}, 0.01, at::kDouble);
constexpr double kScale = 0.5, kBeta1 = 0.9, kBeta2 = 0.95, kEpsilon = 1e-8, kDecay = 0.1;

}  // namespace

TEST_CASE("adam_step is LibTorch's fused AdamW, and its copies are the masters rounded") {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    CAPTURE(c10::toString(type));
    const AdamTensors start = some_tensors(type), ours = clone(start), theirs = clone(start);
    adam_step(ours, {kRate, kScale, kBeta1, kBeta2, kEpsilon, kDecay});
    std::vector<at::Tensor> gradients, masters = theirs.masters, m = theirs.moment1, v = theirs.moment2;
    for (const at::Tensor& gradient : theirs.gradients)
      gradients.push_back(gradient.to(theirs.masters[0].scalar_type()));
    at::_fused_adamw_(masters, gradients, m, v, {}, theirs.updates, 0.01 * kScale, kBeta1, kBeta2, kDecay,
                      kEpsilon, false, false);
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

TEST_CASE("emulated adam_step: every element of every tensor once, by packs and one by one") {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    CAPTURE(c10::toString(type));
    const AdamTensors cpu = some_tensors(type), gpu = clone(cpu);
    adam_step(cpu, {kRate, kScale, kBeta1, kBeta2, kEpsilon, kDecay});
    emulated::adam_step({gpu.masters, gpu.moment1, gpu.moment2, gpu.gradients, gpu.copies, gpu.updates},
                        {kRate, kScale, kBeta1, kBeta2, kEpsilon, kDecay});
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
