// Checks that a training step does the same work on the device whatever the tensors hold and however many
// steps preceded it, and that it reads no values on the host. Such a step can be recorded once as a CUDA
// graph. A CPU shows this as well as a GPU, since the test compares the operators that the host calls.
#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <sstream>

#include "tests/trainer/support.hpp"
#include "trainer/optimizer/adamw.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

namespace {

std::vector<std::string> asked;
int depth = 0;  // nesting of operators; only the outermost ones are what the host calls

void describe(std::ostream& out, const c10::IValue& value) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    out << "tensor";
    if (tensor.defined()) out << tensor.sizes() << tensor.strides() << tensor.scalar_type();
  } else if (value.isList()) {
    out << '(';
    for (const c10::IValue& part : value.toListRef()) describe(out, part);
    out << ')';
  } else if (value.isDouble() || value.isInt() || value.isBool() || value.isScalar() || value.isNone()) {
    out << value;
  } else {
    out << value.tagKind();
  }
  out << ' ';
}

/// The functions that autograd's engine calls for each node; operators are nested in them.
bool is_node(const at::RecordFunction& function) {
  return std::string(function.name()).rfind("autograd::engine", 0) == 0;
}

std::unique_ptr<at::ObserverContext> note_start(const at::RecordFunction& function) {
  if (is_node(function) || depth++ > 0) return nullptr;
  std::ostringstream line;
  line << function.name() << ' ';
  for (const c10::IValue& input : function.inputs()) describe(line, input);
  asked.push_back(line.str());
  return nullptr;
}
void note_end(const at::RecordFunction& function, at::ObserverContext*) {
  if (!is_node(function)) --depth;
}

/// The operators that `work` calls, with their constants and shapes.
template <class Work>
std::vector<std::string> operators_of(const Work& work) {
  asked.clear();
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(note_start, note_end).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  work();
  at::removeCallback(handle);
  return asked;
}

/// Whether the operator reads a value on the host, or has a size that depends on values.
bool waits(const std::string& line) {
  for (const char* name :
       {"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal", "aten::nonzero",
        "aten::masked_select", "aten::_unique", "aten::repeat_interleave"}) {
    if (line.rfind(name, 0) == 0) return true;
  }
  return false;
}

bool by_own_kernel(const std::string& line) { return line.rfind("fomoe::adam_step", 0) == 0; }

// Rows are multiples of 16 bytes, so that LibTorch's grouped product takes them.
costmodel::ModelShape shape_for_graphs() {
  costmodel::ModelShape shape = tiny_shape();
  shape.d_expert = 4;
  return shape;
}

ModelOptions own_kernels(bool skip_token) {
  ModelOptions options;
  options.kernels = Kernels::own;  // the kernels that a GPU uses
  options.experts.skip_token = skip_token;
  options.experts.local.assign(2, {0, 3});
  return options;
}

}  // namespace

TEST_CASE("a training step asks the same of its device each time, and reads nothing of it") {
  for (const bool skip_token : {false, true}) {
    CAPTURE(skip_token);
    Model model(shape_for_graphs(), own_kernels(skip_token));
    AdamW optimizer(model, {});
    at::manual_seed(5);
    std::vector<std::string> first_pass, first_update;
    for (int step = 0; step < 4; ++step) {
      CAPTURE(step);
      const at::Tensor text = at::randint(17, {3, 7}, at::kLong);
      const at::Tensor tokens = text.narrow(1, 0, 6).contiguous(),
                       targets = text.narrow(1, 1, 6).contiguous();
      const auto pass = operators_of([&] {
        // Tensor::backward is an operator itself, which would contain all the others.
        torch::autograd::backward({model.loss(tokens, targets)}, {});
      });
      CHECK(std::count_if(pass.begin(), pass.end(), waits) == 0);
      optimizer.set_learning_rate(1e-3 * (step + 1));
      optimizer.prepare();
      const auto update = operators_of([&] { optimizer.update(); });
      CHECK(std::count_if(update.begin(), update.end(), waits) == 0);
      optimizer.count();
      if (step == 0) {
        first_pass = pass;
        first_update = update;
      }
      CHECK(pass.size() > 200);  // includes the operators of the backward pass
      CHECK(pass == first_pass);
      CHECK(update == first_update);
      CHECK(std::count_if(update.begin(), update.end(), by_own_kernel) > 0);
    }
  }
}

TEST_CASE("an update asks the same of its device while experts differ and warm up") {
  Model model(shape_for_graphs(), own_kernels(false));
  AdamWOptions options;
  options.restart_warmup_steps = 2;
  AdamW optimizer(model, options);
  const at::Tensor tokens = at::zeros({1, 6}, at::kLong);
  const auto step = [&] {
    model.loss(tokens, tokens).backward();
    optimizer.prepare();
    auto asked_for = operators_of([&] { optimizer.update(); });
    optimizer.count();
    return asked_for;
  };
  const auto usual = step();
  CHECK(std::count_if(usual.begin(), usual.end(), by_own_kernel) > 0);
  optimizer.set_experts(0, {{0, 0}, {1, -1}});  // one of the two experts has restarted
  CHECK((step() == usual));
  optimizer.set_experts(0, {{0, 0}, {0, 0}});  // both have restarted: equal ages, but still warming up
  for (int i = 0; i < 3; ++i) CHECK((step() == usual));
}

TEST_CASE("rates and counts that the host changes reach the device by prepare()") {
  const at::Tensor tokens = at::arange(6, at::kLong).unsqueeze(0);
  Model model(tiny_shape(), {{}, at::kCPU, at::kDouble, 42}),
      twin(tiny_shape(), {{}, at::kCPU, at::kDouble, 42});
  AdamW optimizer(model, {}), other(twin, {});
  const auto step = [&](Model& of, AdamW& by) {
    of.loss(tokens, tokens.roll(-1, 1)).backward();
    by.step();
  };
  // Expert tensors whose moments count as 50 steps old take larger steps than those with new moments.
  const std::size_t up = parameter_index(0, Role::up), qkv = parameter_index(0, Role::qkv);
  optimizer.set_experts(0, std::vector<ExpertSteps>(4, ExpertSteps{50, -1}));
  step(model, optimizer);
  step(twin, other);
  CHECK(optimizer.steps()[up].item<double>() == 51);
  CHECK(other.steps()[up].item<double>() == 1);
  CHECK(at::equal(model.parameters()[qkv].master, twin.parameters()[qkv].master));
  CHECK(!at::equal(model.parameters()[up].master, twin.parameters()[up].master));
  // At a rate of 0 no parameter changes.
  optimizer.set_learning_rate(0);
  const at::Tensor before = model.parameters()[qkv].master.detach().clone();
  step(model, optimizer);
  CHECK(at::equal(model.parameters()[qkv].master, before));
  CHECK(optimizer.steps()[up].item<double>() == 52);
}
