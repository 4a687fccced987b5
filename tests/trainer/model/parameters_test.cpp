// Compares the model's tensors with the cost model's count.
#include "trainer/model/parameters.hpp"

#include "costmodel/inputs/model_shape.hpp"
#include "tests/trainer/support.hpp"

using namespace fomoe::trainer;
using namespace fomoe::trainer::testing;
namespace costmodel = fomoe::costmodel;

TEST_CASE("parameters of every preset, by class: from the shapes that the model allocates") {
  for (const costmodel::ModelShape& shape : costmodel::presets()) {
    CAPTURE(shape.name);
    costmodel::ParameterCounts counted;
    for (const ParameterSpec& spec : parameter_specs(shape, {})) {
      switch (spec.tensor_class()) {
        case costmodel::TensorClass::embedding:
        case costmodel::TensorClass::unembedding:
          counted.embedding += spec.elements();
          break;
        case costmodel::TensorClass::attention:
          counted.attention += spec.elements();
          break;
        case costmodel::TensorClass::norm:
          counted.norm += spec.elements();
          break;
        case costmodel::TensorClass::router:
          counted.router += spec.elements();
          break;
        case costmodel::TensorClass::expert:
          counted.expert += spec.elements();
          break;
      }
    }
    const costmodel::ParameterCounts expected = costmodel::count_parameters(shape);
    CHECK(counted.embedding == expected.embedding);
    CHECK(counted.attention == expected.attention);
    CHECK(counted.norm == expected.norm);
    CHECK(counted.router == expected.router);
    CHECK(counted.expert == expected.expert);
    CHECK(counted.total() == expected.total());
  }
}

TEST_CASE("parameters of models that were built") {
  for (const char* name : {"small", "medium"}) {
    const costmodel::ModelShape& shape = *costmodel::find_preset(name);
    CHECK(Model(shape, {}).parameter_count() == costmodel::count_parameters(shape).total());
  }
  ModelOptions unallocated;
  unallocated.device = at::kMeta;
  const costmodel::ModelShape& large = *costmodel::find_preset("large");
  CHECK(Model(large, unallocated).parameter_count() == costmodel::count_parameters(large).total());
}

TEST_CASE("a site's weights do not depend on which experts it holds") {
  const Model full(tiny_shape(), {});
  for (const bool skip_token : {false, true}) {
    ModelOptions options;
    options.experts = {{{1, 3}, {0, 2}}, skip_token};
    const Model part(tiny_shape(), options);
    for (std::size_t i = 0; i < full.parameters().size(); ++i) {
      const ParameterSpec& spec = full.parameters()[i].spec;
      CAPTURE(spec.name());
      at::Tensor expected = full.parameters()[i].master;
      const at::Tensor held = spec.layer == 0 ? at::tensor({1, 3}, at::kLong) : at::tensor({0, 2}, at::kLong);
      if (spec.role == Role::up || spec.role == Role::down) expected = expected.index_select(0, held);
      if (spec.role == Role::router && !skip_token) expected = expected.index_select(1, held);
      CHECK(at::equal(part.parameters()[i].master, expected));
    }
  }
}

TEST_CASE("expert lists that are not increasing, empty or out of range are refused") {
  for (const std::vector<int>& ids : {std::vector<int>{}, {2, 1}, {1, 1}, {4}, {-1}}) {
    CHECK_THROWS_AS((void)parameter_specs(tiny_shape(), {{ids, {0}}, false}), std::invalid_argument);
  }
  CHECK_THROWS_AS((void)parameter_specs(tiny_shape(), {{{0}}, false}),
                  std::invalid_argument);  // the choice has one layer, the model two
}

TEST_CASE("heads: one or more, of an even width") {
  costmodel::ModelShape shape = tiny_shape();
  for (const std::int64_t heads : {1, 2}) {
    shape.heads = heads;
    shape.d_model = 6 * heads;
    CHECK_NOTHROW((void)parameter_specs(shape, {}));
    shape.d_model = 3 * heads;
    CHECK_THROWS_AS((void)parameter_specs(shape, {}), std::invalid_argument);
  }
  shape.heads = 0;
  CHECK_THROWS_AS((void)parameter_specs(shape, {}), std::invalid_argument);
}
