// Compares the kernel of adam.cu with the CPU's loop.
#include "trainer/kernels/adam/adam.hpp"

#include "tests/trainer/support.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

TEST_CASE("adam_step: the CPU's masters, moments and copies, of tensors large and small") {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    CAPTURE(c10::toString(type));
    at::manual_seed(12);
    AdamTensors cpu, gpu;
    for (const std::int64_t n : {1, 3, 4, 0, 16'384, 16'385, 1'000'000, 64, 65}) {
      for (int again = 0; again < 13; ++again) {  // of each kind more tensors than one launch takes
        cpu.masters.push_back(at::randn({n}));
        cpu.moment1.push_back(at::randn({n}) * 0.1);
        cpu.moment2.push_back(at::rand({n}) * 0.01);
        cpu.gradients.push_back(at::randn({n}).to(type));
        cpu.copies.push_back(type == at::kBFloat16 ? at::zeros({n}, type) : at::Tensor());
        cpu.updates.push_back(at::full({}, 1.0 + again, at::kFloat));
      }
    }
    const auto moved = [](const std::vector<at::Tensor>& tensors) {
      std::vector<at::Tensor> out;
      for (const at::Tensor& tensor : tensors) out.push_back(tensor.defined() ? tensor.cuda() : tensor);
      return out;
    };
    gpu = {moved(cpu.masters),   moved(cpu.moment1), moved(cpu.moment2),
           moved(cpu.gradients), moved(cpu.copies),  moved(cpu.updates)};
    const at::Tensor rate = at::full({}, 0.01, at::kDouble);
    adam_step(cpu, {rate, 0.5, 0.9, 0.95, 1e-8, 0.1});
    adam_step(gpu, {rate.cuda(), 0.5, 0.9, 0.95, 1e-8, 0.1});
    for (std::size_t i = 0; i < cpu.masters.size(); ++i) {
      CAPTURE(i);
      if (cpu.masters[i].numel() == 0) continue;
      CHECK(largest_difference(gpu.masters[i].cpu(), cpu.masters[i]) < 1e-5);
      CHECK(largest_difference(gpu.moment1[i].cpu(), cpu.moment1[i]) < 1e-6);
      CHECK(largest_difference(gpu.moment2[i].cpu(), cpu.moment2[i]) < 1e-6);
      if (type == at::kBFloat16) CHECK(at::equal(gpu.copies[i], gpu.masters[i].to(at::kBFloat16)));
    }
  }
}

TEST_CASE("adam_step: the CPU's masters of experts with unequal counts, as rows and as columns") {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    CAPTURE(c10::toString(type));
    at::manual_seed(14);
    const at::ScalarType master = type == at::kDouble ? at::kDouble : at::kFloat;
    AdamTensors cpu, gpu;
    const std::vector<std::pair<std::vector<std::int64_t>, std::int64_t>> shapes = {
        {{4, 256, 64}, 0}, {{5, 16'387}, 0}, {{256, 32}, 1}, {{9, 300}, 1}, {{2, 3, 5}, 1}};
    for (const auto& [sizes, dim] : shapes) {
      const std::int64_t experts = sizes[static_cast<std::size_t>(dim)];
      cpu.masters.push_back(at::randn(sizes, master));
      cpu.moment1.push_back(at::randn(sizes, master) * 0.1);
      cpu.moment2.push_back(at::rand(sizes, master) * 0.01);
      cpu.gradients.push_back(at::randn(sizes, at::kDouble).to(type));
      cpu.copies.push_back(type == at::kBFloat16 ? at::zeros(sizes, type) : at::Tensor());
      cpu.updates.push_back(1 + at::arange(experts, at::kFloat) % 7);
      cpu.ages.push_back(1 + at::arange(experts, at::kFloat) % 5);
      cpu.expert_dims.push_back(dim);
    }
    const auto moved = [](const std::vector<at::Tensor>& tensors) {
      std::vector<at::Tensor> out;
      for (const at::Tensor& tensor : tensors) out.push_back(tensor.defined() ? tensor.cuda() : tensor);
      return out;
    };
    gpu = {moved(cpu.masters), moved(cpu.moment1), moved(cpu.moment2), moved(cpu.gradients),
           moved(cpu.copies),  moved(cpu.updates), moved(cpu.ages),    cpu.expert_dims};
    const at::Tensor rate = at::full({}, 0.01, at::kDouble);
    adam_step(cpu, {rate, 0.5, 0.9, 0.95, 1e-8, 0.1, 4});
    adam_step(gpu, {rate.cuda(), 0.5, 0.9, 0.95, 1e-8, 0.1, 4});
    for (std::size_t i = 0; i < cpu.masters.size(); ++i) {
      CAPTURE(i);
      CHECK(largest_difference(gpu.masters[i].cpu(), cpu.masters[i]) < 1e-5);
      CHECK(largest_difference(gpu.moment2[i].cpu(), cpu.moment2[i]) < 1e-6);
      if (type == at::kBFloat16) CHECK(at::equal(gpu.copies[i], gpu.masters[i].to(at::kBFloat16)));
    }
  }
}
