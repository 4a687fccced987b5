// Tests updates of experts with unequal counts: each expert has the bias correction and the warm-up of its
// own counts, and the update asks the device for no more than one of equal experts does.
#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/trainer/support.hpp"
#include "trainer/optimizer/adamw.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;

namespace {

constexpr double kWarmup = 3;

AdamWOptions settings() {
  AdamWOptions options;
  options.learning_rate = 0.01;
  options.epsilon = 1e-5;
  options.weight_decay = 0.1;
  options.restart_warmup_steps = kWarmup;
  return options;
}

// A layer of each kind: experts that differ, and experts that are alike but warm up.
const std::vector<ExpertSteps> kUnequal = {{40, -1}, {0, 0}, {2.75, 1}, {40, 7}}, kRestarted(4, {0, 0});

Model model_of(Kernels kernels, at::ScalarType type, bool skip_token = false) {
  ModelOptions options;
  options.kernels = kernels;
  options.dtype = type;
  options.experts.skip_token = skip_token;
  if (skip_token) options.experts.local.assign(2, {0, 1, 2, 3});
  return {tiny_shape(), options};
}

/// Gives all parameters random gradients of the type.
void set_gradients(const Model& model, at::ScalarType type) {
  for (const Parameter& parameter : model.parameters())
    parameter.compute.mutable_grad() = at::randn(parameter.master.sizes(), at::kDouble).to(type);
}

/// AdamW in fp64, expert by expert.
class Reference {
 public:
  Reference(const Model& model, bool skip_token) : model_(&model), skip_token_(skip_token) {
    for (const Parameter& parameter : model.parameters()) {
      theta.push_back(parameter.master.detach().to(at::kDouble, false, /*copy=*/true));
      m.push_back(at::zeros_like(theta.back()));
      v.push_back(at::zeros_like(theta.back()));
      updates_.push_back(0);
    }
  }

  /// Updates all parameters; `experts` are the counts before the update.
  void step(const std::vector<std::vector<ExpertSteps>>& experts) {
    for (std::size_t i = 0; i < theta.size(); ++i) {
      const ParameterSpec& spec = model_->parameters()[i].spec;
      const at::Tensor g = model_->parameters()[i].compute.grad().to(at::kDouble);
      const std::int64_t dim = expert_dim(spec, skip_token_);
      if (dim < 0) {
        updates_[i] += 1;
        update(spec, theta[i], m[i], v[i], g, updates_[i], 1);
        continue;
      }
      const std::vector<ExpertSteps>& of_layer = experts[static_cast<std::size_t>(spec.layer)];
      for (std::int64_t e = 0; e < theta[i].size(dim); ++e) {
        const ExpertSteps& expert = of_layer[static_cast<std::size_t>(e)];
        const double warmth =
            expert.since_restart < 0 ? 1 : std::min(1.0, (expert.since_restart + 1) / kWarmup);
        update(spec, theta[i].select(dim, e), m[i].select(dim, e), v[i].select(dim, e), g.select(dim, e),
               expert.moments + 1, warmth);
      }
    }
  }

  /// Forgets the moments.
  void restart() {
    for (std::size_t i = 0; i < theta.size(); ++i) {
      m[i].zero_();
      v[i].zero_();
      updates_[i] = 0;
    }
  }

  std::vector<at::Tensor> theta, m, v;

 private:
  static void update(const ParameterSpec& spec, at::Tensor theta, at::Tensor m, at::Tensor v,
                     const at::Tensor& g, double t, double warmth) {
    const AdamWOptions options = settings();
    const double rate = options.learning_rate * spec.rate_scale * warmth;
    m.copy_(0.9 * m + 0.1 * g);
    v.copy_(0.95 * v + 0.05 * g * g);
    const at::Tensor root = (v / (1 - std::pow(0.95, t))).sqrt() + options.epsilon * spec.epsilon_scale;
    theta.copy_(theta - rate * options.weight_decay * spec.decay_scale() * theta -
                rate * (m / (1 - std::pow(0.9, t))) / root);
  }

  const Model* model_;
  bool skip_token_;
  std::vector<double> updates_;
};

std::map<std::string, int> calls;

std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& function) {
  ++calls[function.name()];
  return nullptr;
}

/// How often `work` calls each operator, nested ones included.
template <class Work>
std::map<std::string, int> calls_of(const Work& work) {
  calls.clear();
  const auto handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback(note).scopes({at::RecordScope::FUNCTION}));
  work();
  at::removeCallback(handle);
  return calls;
}

}  // namespace

TEST_CASE("a gradient whose layout in memory is not that of its parameter gives the same update") {
  for (const Kernels kernels : {Kernels::own, Kernels::library}) {
    CAPTURE((kernels == Kernels::own));
    const at::NoGradGuard no_grad;
    std::vector<std::vector<at::Tensor>> masters;
    for (const bool transposed : {false, true}) {
      at::manual_seed(4);
      Model model = model_of(kernels, at::kFloat);
      AdamW optimizer(model, settings());
      std::size_t others = 0;
      for (int step = 0; step < 3; ++step) {
        set_gradients(model, at::kFloat);
        for (const Parameter& parameter : model.parameters()) {
          at::Tensor& gradient = parameter.compute.mutable_grad();
          if (!transposed || gradient.dim() != 2 || gradient.size(0) == 1 || gradient.size(1) == 1) continue;
          gradient = gradient.t().contiguous().t();
          others += gradient.strides() != parameter.master.strides();
        }
        optimizer.update();
      }
      CHECK((others > 0) == transposed);
      std::vector<at::Tensor>& own = masters.emplace_back();
      for (const Parameter& parameter : model.parameters()) own.push_back(parameter.master.detach().clone());
    }
    for (std::size_t i = 0; i < masters[0].size(); ++i) CHECK(at::equal(masters[0][i], masters[1][i]));
  }
}

TEST_CASE("experts of unequal counts are updated as each alone, in fp64") {
  bool restarts = false;
  SUBCASE("moments that are kept") {}
  SUBCASE("moments that are forgotten once") { restarts = true; }
  // The last case is a bf16 model with gradients summed in fp32.
  for (const auto& [type, gradients] :
       {std::pair(at::kDouble, at::kDouble), std::pair(at::kFloat, at::kFloat),
        std::pair(at::kBFloat16, at::kBFloat16), std::pair(at::kBFloat16, at::kFloat)}) {
    for (const Kernels kernels : {Kernels::own, Kernels::library}) {
      for (const bool skip_token : {false, true}) {
        CAPTURE(c10::toString(type));
        CAPTURE(c10::toString(gradients));
        CAPTURE(skip_token);
        CAPTURE((kernels == Kernels::own));
        const at::NoGradGuard no_grad;
        at::manual_seed(4);
        Model model = model_of(kernels, type, skip_token);
        AdamW optimizer(model, settings());
        Reference reference(model, skip_token);
        for (int step = 0; step < 6; ++step) {
          if (step == 1) {  // the first layer's experts differ from here on
            optimizer.set_experts(0, kUnequal);
            optimizer.set_experts(1, kRestarted);
          }
          if (step == 4 && restarts) {
            optimizer.restart();
            reference.restart();
          }
          set_gradients(model, gradients);
          reference.step(optimizer.experts());
          optimizer.step();
        }
        for (std::size_t i = 0; i < reference.theta.size(); ++i) {
          const Parameter& parameter = model.parameters()[i];
          CAPTURE(parameter.spec.name());
          // Relative: fp32 roundings of 2^−24 in each of six steps; fp64 models have counts of fp32 as well.
          const auto close = [](const at::Tensor& got, const at::Tensor& wanted) {
            return largest_difference(got, wanted) <= 1e-5 * wanted.abs().max().item<double>();
          };
          CHECK(close(parameter.master, reference.theta[i]));
          CHECK(close(optimizer.moment1()[i], reference.m[i]));
          CHECK(close(optimizer.moment2()[i], reference.v[i]));
          CHECK(at::equal(parameter.compute.detach(), parameter.master.detach().to(type)));
        }
        // A restart forgets moments; experts go on warming up.
        const std::vector<ExpertSteps> unequal = {{45, -1}, {5, 5}, {7.75, 6}, {45, 12}},
                                       restarted = {{2, -1}, {2, 5}, {2, 6}, {2, 12}};
        CHECK((optimizer.experts()[0] == (restarts ? restarted : unequal)));
        CHECK((optimizer.experts()[1] == std::vector<ExpertSteps>(4, {restarts ? 2.0 : 5.0, 5})));
      }
    }
  }
}

TEST_CASE("by our own kernel, an update is the same work whatever the counts of the experts") {
  Model model = model_of(Kernels::own, at::kFloat);
  AdamW optimizer(model, settings());
  const auto next = [&] {
    set_gradients(model, at::kFloat);
    optimizer.prepare();
    auto asked = calls_of([&] { optimizer.update(); });
    optimizer.count();
    return asked;
  };
  const auto usual = next();
  CHECK(usual.at("fomoe::adam_step") > 0);
  CHECK(!usual.contains("aten::_fused_adamw_"));
  optimizer.set_experts(0, kUnequal);
  optimizer.set_experts(1, kRestarted);
  // The warm-up ends during these steps.
  for (int step = 0; step < 5; ++step) CHECK(next() == usual);
}

TEST_CASE("an update by the library does not take more calls the more experts differ") {
  const auto asked = [](std::int64_t experts, bool unequal) {
    ModelOptions options;
    options.kernels = Kernels::library;
    auto shape = tiny_shape();
    shape.experts = experts;
    Model model(shape, options);
    AdamW optimizer(model, settings());
    if (unequal) {
      std::vector<ExpertSteps> steps;
      for (std::int64_t e = 0; e < experts; ++e)
        steps.push_back({static_cast<double>(e), static_cast<double>(e)});
      optimizer.set_experts(0, steps);
    }
    set_gradients(model, at::kFloat);
    return calls_of([&] { optimizer.step(); });
  };
  const auto few = asked(4, true), many = asked(40, true), equal = asked(4, false);
  CHECK(few == many);
  CHECK(!many.contains("aten::full"));
  CHECK(many.at("fomoe::adam_step") == 2);  // down has another rate_scale than up and router
  CHECK(many.at("aten::_fused_adamw_") == equal.at("aten::_fused_adamw_"));
  CHECK(!equal.contains("fomoe::adam_step"));
}

TEST_CASE("the device counts on as the host does, so that counts reach it only if they change") {
  Model model = model_of(Kernels::own, at::kFloat);
  AdamW optimizer(model, settings());
  const auto copies = [&] {
    set_gradients(model, at::kFloat);
    const auto asked = calls_of([&] { optimizer.prepare(); });
    optimizer.update();
    optimizer.count();
    return asked.contains("aten::copy_") ? asked.at("aten::copy_") : 0;
  };
  CHECK(copies() == 2);  // one for each layer
  CHECK(copies() == 0);
  optimizer.set_experts(0, {{1, -1}, {0, 0}, {1, -1}, {1, -1}});
  CHECK(copies() == 1);
  CHECK(copies() == 0);
  // Sums of a fraction and ones, rounded to fp32 each time, depart from the host's.
  const double age = 1.0 / 3;
  optimizer.set_experts(0, std::vector<ExpertSteps>(4, {age, -1}));
  for (int step = 1; step <= 40; ++step) {
    copies();
    CHECK(optimizer.steps()[parameter_index(0, Role::up)].item<double>() ==
          doctest::Approx(age + step).epsilon(1e-7));
    optimizer.prepare();
    CHECK(optimizer.steps()[parameter_index(0, Role::up)].item<float>() == static_cast<float>(age + step));
  }
  CHECK_THROWS_AS(optimizer.set_experts(0, {{1, -1}}), c10::Error);
}
