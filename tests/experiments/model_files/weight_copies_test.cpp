// Tests what of a folder of weights is the model, and whether its unembedding is a matrix of its own.
#include <doctest/doctest.h>

#include "experiments/model_files/weights.hpp"
#include "tests/experiments/model_files/weight_files.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;

TEST_CASE("weights: a copy of the model that the index does not name is no part of it") {
  const Folder folder;
  write_all(folder / "model-00001-of-00001.safetensors", weights(sample()));
  const std::int64_t alone = scenario::read_weights(folder.path()).shape.opaque->dense_parameters;
  Json index;
  const Json all = sample();
  for (const auto& [name, tensor] : all.items())
    if (name != "__metadata__") index["weight_map"][name] = "model-00001-of-00001.safetensors";
  write_all(folder / "model.safetensors.index.json", index.dump());
  Json copy;
  add_weight(copy, "tok_embeddings.weight", {20, 8});
  add_weight(copy, "layers.0.feed_forward.w1.weight", {32, 8});
  write_all(folder / "consolidated.safetensors", weights(copy));
  CHECK(scenario::read_weights(folder.path()).shape.opaque->dense_parameters == alone);
}

TEST_CASE("weights: an unembedding has one of its usual names and the shape of the embedding") {
  const auto tied = [](const char* name, std::int64_t rows) {
    Json header = sample();
    header.erase("lm_head.weight");
    add_weight(header, name, {rows, 8});
    const Folder folder;
    write_all(folder / "model.safetensors", weights(header));
    return scenario::read_weights(folder.path()).shape.tied_embeddings;
  };
  for (const char* name :
       {"lm_head.weight", "output.weight", "language_model.output.weight", "unembed.weight",
        "transformer.output_layer.weight", "model.transformer.ff_out.weight"}) {
    CAPTURE(name);
    CHECK_FALSE(tied(name, 20));
  }
  CHECK_FALSE(tied("lm_head.weight", 24));  // with rows beyond the vocabulary
  CHECK(tied("score.weight", 20));
  CHECK(tied("classifier.head.weight", 2));
}
