// Compares the plan's tensor groups with the tensors of the model.
#include "trainer/model/tensor_groups.hpp"

#include "tests/trainer/support.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;
using costmodel::TensorClass;
using costmodel::TensorGroup;

namespace {

std::vector<TensorGroup> dense_and_experts(const costmodel::ModelShape& shape) {
  const costmodel::ParameterCounts counts = costmodel::count_parameters(shape);
  std::vector<TensorGroup> groups{{{TensorClass::embedding, TensorClass::attention, TensorClass::norm},
                                   0,
                                   shape.layers,
                                   0,
                                   shape.experts,
                                   counts.embedding + counts.attention + counts.norm}};
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    for (std::int64_t e = 0; e < shape.experts; ++e) {
      groups.push_back({{TensorClass::router, TensorClass::expert},
                        layer,
                        layer + 1,
                        e,
                        e + 1,
                        costmodel::router_column_elements(shape) + costmodel::expert_elements(shape)});
    }
  }
  return groups;
}

}  // namespace

TEST_CASE("dense and expert groups find every element of every parameter exactly once") {
  for (const costmodel::ModelShape& shape : {tiny_shape(), *costmodel::find_preset("small")}) {
    CAPTURE(shape.name);
    const Model model(shape, {});
    std::vector<at::Tensor> found;
    for (const Parameter& parameter : model.parameters())
      found.push_back(at::zeros_like(parameter.master.detach()));
    for (const TensorGroup& group : dense_and_experts(shape)) {
      std::int64_t elements = 0;
      for (const ParameterSlice& slice : slices(model, group)) {
        slice.of(found[slice.parameter]) += 1;
        elements += slice.of(found[slice.parameter]).numel();
      }
      CHECK(elements == group.elements);
    }
    for (const at::Tensor& count : found) CHECK(count.eq(1).all().item<bool>());
  }
}

TEST_CASE("layer ranges: the embedding's norm goes with layer 0, the final norm with the last") {
  const Model model(tiny_shape(), {});  // d = 8, 2 layers, 4 norms each
  CHECK(parameter_views(model, {{TensorClass::norm}, 0, 1, 0, 0, 8 * (4 + 1)}).size() == 5);
  CHECK(parameter_views(model, {{TensorClass::norm}, 1, 2, 0, 0, 8 * (4 + 1)}).size() == 5);
  CHECK(parameter_views(model, {{TensorClass::norm}, 0, 2, 0, 0, 8 * (8 + 2)}).size() == 10);
  CHECK(parameter_views(model, {{TensorClass::attention}, 1, 2, 0, 0, 4 * 8 * 8}).size() == 2);
}

TEST_CASE("an expert's slices are its own values, wherever it stands on the site") {
  const Model full(tiny_shape(), {});
  ModelOptions options;
  options.experts = {{{1, 3}, {0, 2}}, false};
  const Model part(tiny_shape(), options);
  const TensorGroup expert3{{TensorClass::router, TensorClass::expert}, 0, 1, 3, 4, 8 + 2 * 8 * 3};
  const std::vector<at::Tensor> here = parameter_views(part, expert3), there = parameter_views(full, expert3);
  REQUIRE(here.size() == 3);  // router column, up, down
  for (std::size_t i = 0; i < here.size(); ++i) CHECK(at::equal(here[i], there[i]));
  CHECK(here[1].data_ptr() ==
        part.parameters()[parameter_index(0, Role::up)].master[1].data_ptr());  // a view
}

TEST_CASE("experts that are not local, and counts that differ, are refused") {
  ModelOptions options;
  options.experts = {{{1, 3}, {0, 2}}, false};
  const Model model(tiny_shape(), options);
  CHECK_THROWS_AS((void)slices(model, {{TensorClass::expert}, 0, 1, 0, 1, 48}), std::invalid_argument);
  CHECK_THROWS_AS((void)slices(model, {{TensorClass::expert}, 0, 1, 1, 4, 144}), std::invalid_argument);
  CHECK_THROWS_AS((void)slices(model, {{TensorClass::expert}, 0, 1, 1, 2, 47}), std::invalid_argument);
  CHECK_NOTHROW((void)slices(model, {{TensorClass::expert}, 0, 1, 1, 2, 48}));
}
