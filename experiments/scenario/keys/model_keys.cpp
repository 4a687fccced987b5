// Keys of the model.
#include <algorithm>

#include "experiments/scenario/keys/members.hpp"

namespace fomoe::scenario {
namespace {

using costmodel::ModelShape;

// These bounds keep every product of shape keys within 64 bits. The reader also checks the total.
constexpr double kMaxWidth = 1e6, kMaxExperts = 1e6, kMaxVocabulary = 1e8;

constexpr KeyMember presets = {.names = [] {
  std::vector<std::string> names;
  for (const ModelShape& shape : costmodel::presets()) names.push_back(shape.name);
  return names;
}};

/// Sets a part of a model's shape, unless the reader may refuse the shape.
template <auto Field>
bool set_shape(Scenario& scenario, double value) {
  ModelShape& model = scenario.model;
  if (model.opaque || model.experts == 0) return false;
  assign(model.*Field, value);
  constexpr std::int64_t kSmall = 1 << 15;  // far below the reader's bounds on the number of parameters
  return model.heads > 0 && model.d_model % model.heads == 0 && model.d_model / model.heads % 2 == 0 &&
         model.active_experts <= model.experts && model.experts > 0 &&
         std::max({model.d_model, model.layers, model.experts, model.d_expert, model.d_ffn}) <= kSmall;
}
template <auto Field>
constexpr KeyMember shape = {.set = set_shape<Field>, .has_rules = true};

bool set_sequence_length(Scenario& scenario, double value) {
  constexpr double kMostTokens = 9e15;  // the reader refuses steps of more
  assign(scenario.model.sequence_length, value);
  return !scenario.model.opaque && !scenario.workload.batch_in_tokens &&
         value * static_cast<double>(scenario.workload.global_batch_sequences) <= kMostTokens;
}
constexpr KeyMember sequence_length = {.set = set_sequence_length, .has_rules = true};

constexpr Key kModelKeys[] = {
    {"preset", Kind::choice, "", "the shape keys below describe the model", "a model of the FoMoE paper",
     "\"medium\"", presets},
    {"hf_config", Kind::text, "", "no config file",
     "a model's Hugging Face config.json, relative to this file", "\"../models/mixtral-8x7b.json\""},
    {"multi_token_prediction", Kind::boolean, "false", "",
     "whether the config's multi-token-prediction modules count in parameters, FLOPs and memory; needs "
     "hf_config",
     "true"},
    {"safetensors", Kind::text, "", "no weights",
     "folder with a model's *.safetensors files, relative to this file; only their headers are read, and the "
     "answer says which tensors were taken as experts",
     "\"../weights/my-model\""},
    {"shape", Kind::text, "", "no shape file",
     "file that `fomoe model` or Python's fomoe.model_from_transformers wrote, relative to this file",
     "\"my-model.json\""},
    {"dense_parameters", Values(Kind::count, 1e16), "", "counted from the shape",
     "number of parameters outside of experts, for a model of which only parameter counts are known",
     "124e6"},
    {"expert_parameters", Values(Kind::count, 1e16), "", "the model has no experts",
     "number of parameters of all experts in all layers together; needs dense_parameters", "1.6e9"},
    {"d_model", Values(Kind::count, kMaxWidth), "", "from the preset", "width of the residual stream", "512",
     shape<&ModelShape::d_model>, counts},
    {"layers", Values(Kind::count, kMaxLayers), "", "from the preset", "number of transformer blocks", "16",
     shape<&ModelShape::layers>, counts},
    {"heads", Values(Kind::count, kMaxWidth), "", "from the preset",
     "number of attention heads; d_model ÷ heads must be even", "8", shape<&ModelShape::heads>, counts},
    {"experts", Values(Kind::count, kMaxExperts, 0), "", "from the preset",
     "number of experts in each layer, N_e; 0: a dense model", "16", shape<&ModelShape::experts>, counts},
    {"active_experts", Values(Kind::count, kMaxExperts), "", "from the preset",
     "number of experts that process each token, k", "4", shape<&ModelShape::active_experts>, counts},
    {"d_expert", Values(Kind::count, kMaxWidth), "", "from the preset", "hidden width of one expert", "128",
     shape<&ModelShape::d_expert>, counts},
    {"d_ffn", Values(Kind::count, kMaxWidth), "", "active_experts × d_expert",
     "hidden width of the feed-forward blocks of a dense model, with experts = 0", "512"},
    {"vocabulary", Values(Kind::count, kMaxVocabulary), "", "from the preset", "number of distinct tokens",
     "32000", shape<&ModelShape::vocabulary>, counts},
    {"sequence_length", Values(Kind::count, 1e8), "2048", "", "number of tokens in a sequence", "2048",
     sequence_length, counts},
};

}  // namespace

std::vector<Key> model_keys() { return keys_in("model", kModelKeys); }

}  // namespace fomoe::scenario
