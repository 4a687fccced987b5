// Tests of models that are described by the headers of their weights or by a shape file.
#include "experiments/model_files/weights.hpp"

#include <doctest/doctest.h>

#include <string>

#include "experiments/json/json.hpp"
#include "experiments/model_files/shape_file.hpp"
#include "platforms/support/input_error.hpp"
#include "tests/experiments/model_files/weight_files.hpp"
#include "tests/experiments/run_fomoe.hpp"

using namespace fomoe;
using namespace fomoe::tests;
using scenario::GuessedModel;
using scenario::Json;

namespace {

constexpr std::int64_t kExperts = 2 * 4 * 2 * 6 * 8;
constexpr std::int64_t kDense = 2 * 20 * 8 + 3 * 24 * 8 + 32 * 8 + 2 * (4 * 8 + 6 * 8);

GuessedModel read_header(const Folder& folder, const Json& header) {
  write_all(folder / "model.safetensors", weights(header));
  return scenario::read_weights(folder.path());
}

std::string complaint(const Folder& folder) {
  try {
    (void)scenario::read_weights(folder.path());
  } catch (const FileError& error) {
    const std::string text = error.what();
    return text.starts_with(folder.path()) ? text.substr(folder.path().size()) : text;
  }
  return "accepted";
}

std::string detail(const GuessedModel& model, const std::string& what) {
  for (const Provenance& note : model.notes) {
    if (note.what == what && note.origin == Origin::assumed) return note.detail;
  }
  return "";
}

const std::string kScenario =
    "[model]\nsafetensors = \".\"\n[workload]\ntokens = 1e9\nglobal_batch_sequences = 256\n"
    "[strategy]\nmethod = \"diloco\"\nlocal_steps = 64\n[compute]\nstep_time = \"1s\"\n"
    "[platform]\nsites = 4\nbandwidth = \"10Gbps\"\nlatency = \"10ms\"\n";

}  // namespace

TEST_CASE("weights: the tensors named experts are the routed experts, and all others are dense") {
  const Folder folder;
  const GuessedModel model = read_header(folder, sample());
  CHECK(model.shape.opaque->expert_parameters == kExperts);
  CHECK(model.shape.opaque->dense_parameters == kDense);
  CHECK(model.shape.layers == 3);
  CHECK(model.shape.dense_layers == 1);
  CHECK(model.shape.experts == 4);
  CHECK(model.shape.vocabulary == 20);
  CHECK(model.shape.d_model == 8);
  CHECK_FALSE(model.shape.tied_embeddings);
  CHECK(detail(model, "experts of the model") ==
        "the tensors named like model.layers.1.mlp.experts.0.down_proj.weight: 4 experts in each of 2 "
        "layers, " +
            std::to_string(kExperts) + " parameters; please confirm");
  // Nothing says how many experts a token uses, nor how many heads there are.
  CHECK(model.shape.active_experts == 4);
  CHECK(detail(model, "active experts").starts_with("all 4:"));
  CHECK(detail(model, "FLOPs of attention").starts_with("0:"));
}

TEST_CASE("weights: experts in one tensor for each layer, in all of its usual forms") {
  const Folder folder;
  Json header = Json::object();
  add_weight(header, "model.embed_tokens.weight", {20, 8});
  SUBCASE("a dimension for the experts") {
    add_weight(header, "model.layers.0.mlp.experts.gate_up_proj", {4, 8, 12});
  }
  SUBCASE("a name without the word experts") {
    add_weight(header, "model.layers.0.block_sparse_moe.input_linear.weight", {4, 8, 12});
  }
  SUBCASE("another stack of layers before this one, which has experts as well") {
    add_weight(header, "model.layers.0.mlp.experts.gate_up_proj", {4, 8, 12});
    add_weight(header, "extra.layers.0.mlp.experts.gate_up_proj", {3, 2, 2});
  }
  SUBCASE("rows of one matrix, counted by the router") {
    add_weight(header, "model.layers.0.ffn.experts.mlp.w1", {4 * 12, 8});
    add_weight(header, "model.layers.0.ffn.router.layer.weight", {4, 8});
  }
  const GuessedModel model = read_header(folder, header);
  CHECK(model.shape.experts == 4);
  CHECK(model.shape.opaque->expert_parameters == 4 * 8 * 12);
}

TEST_CASE("weights: a convolution with three dimensions is no expert, and interleaved layers are found") {
  const Folder folder;
  Json header = Json::object();
  add_weight(header, "model.layers.0.moe.conv.weight", {16, 1, 4});
  add_weight(header, "model.layers.1.mlp.experts.down_proj", {4, 8, 12});
  add_weight(header, "model.layers.2.mlp.down_proj", {8, 12});
  add_weight(header, "model.layers.3.mlp.experts.down_proj", {4, 8, 12});
  add_weight(header, "model.layers.4.mlp.down_proj", {8, 12});
  const GuessedModel model = read_header(folder, header);
  CHECK(model.shape.moe_layer_list == std::vector<std::int64_t>{1, 3});
  CHECK(model.shape.opaque->dense_parameters == 16 * 4 + 2 * 8 * 12);
  CHECK(expert_elements(model.shape) == 8 * 12);
}

TEST_CASE("weights with a config.json: what it names is taken from it, even of an unknown architecture") {
  const Folder folder;
  write_all(folder / "config.json",
            R"({"model_type": "unheard_of", "num_attention_heads": 2, "num_experts_per_tok": 2})");
  const GuessedModel model = read_header(folder, sample());
  CHECK(model.shape.heads == 2);
  CHECK(model.shape.active_experts == 2);
  CHECK(detail(model, "model").find("an architecture that is not in the table") != std::string::npos);
  CHECK(detail(model, "active experts") == "2: num_experts_per_tok of config.json");
  // A token uses 2 of the 4 experts of each layer, and reads one row of the embedding table.
  CHECK(active_parameters(model.shape, true) == kDense + kExperts / 2);
  CHECK(active_parameters(model.shape, false) == kDense + kExperts / 2 - 20 * 8);
}

TEST_CASE("weights with a config.json whose values are of another kind: they are as good as missing") {
  const Folder folder;
  write_all(folder / "config.json", R"({"num_attention_heads": [2, 4], "num_experts_per_tok": "two"})");
  const GuessedModel model = read_header(folder, sample());
  CHECK(model.shape.heads == 0);
  CHECK(model.shape.active_experts == 4);
}

TEST_CASE("weights of a known architecture: nothing is guessed if the counts agree") {
  const Folder folder;
  write_all(folder / "config.json",
            R"({"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
                "intermediate_size": 16, "vocab_size": 20, "tie_word_embeddings": true, "attention_bias": false, "mlp_bias": false})");
  Json header = Json::object();
  add_weight(header, "model.embed_tokens.weight", {20, 8});
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
    add_weight(header, std::string("model.layers.0.self_attn.") + name + ".weight", {8, 8});
  for (const char* name : {"gate_proj", "up_proj"})
    add_weight(header, std::string("model.layers.0.mlp.") + name + ".weight", {16, 8});
  add_weight(header, "model.layers.0.mlp.down_proj.weight", {8, 16});
  add_weight(header, "model.layers.0.input_layernorm.weight", {8});
  add_weight(header, "model.layers.0.post_attention_layernorm.weight", {8});
  add_weight(header, "model.norm.weight", {8});
  const GuessedModel model = read_header(folder, header);
  CHECK(model.shape.architecture == "llama");
  CHECK(model.notes.size() == 1);
  CHECK(model.notes[0].origin == Origin::computed);
  add_weight(header, "model.extra.weight", {8});
  const GuessedModel other = read_header(folder, header);
  CHECK(other.shape.architecture == "opaque");
  CHECK(detail(other, "model").find("a llama would have 824 parameters, and the tensors have 832") !=
        std::string::npos);
}

TEST_CASE("weights: scales of quantised numbers are no parameters, and packed numbers are refused") {
  const Folder folder;
  Json header = sample();
  add_weight(header, "model.layers.0.mlp.up_proj.weight_scale_inv", {1, 1}, "F32");
  add_weight(header, "model.position_ids", {512}, "I64");
  const GuessedModel model = read_header(folder, header);
  CHECK(model.shape.opaque->dense_parameters == kDense);
  CHECK(detail(model, "parameters").starts_with("2 tensors are no parameters"));
  add_weight(header, "model.layers.0.mlp.qweight", {4, 8}, "I32");
  write_all(folder / "model.safetensors", weights(header));
  CHECK(
      complaint(folder).find("got the tensor model.layers.0.mlp.qweight of type I32, which holds packed "
                             "numbers of unknown count; expected weights that are floating-point numbers") !=
      std::string::npos);
}

TEST_CASE("weights: a wrong file or folder, and the message about it") {
  const Folder folder;
  const std::string example = "; for example model.safetensors from a model's repository";
  const auto wrong = [&](const std::string& bytes) {
    write_all(folder / "a.safetensors", bytes);
    return complaint(folder);
  };
  CHECK(complaint(folder) ==
        ":1: model.safetensors: got a folder without *.safetensors files; expected the "
        "folder of a model's weights" +
            example);
  const std::string file = "/a.safetensors:1: model.safetensors: got ";
  CHECK(wrong("abc") ==
        file + "a file of less than 8 bytes; expected 8 bytes with the length of a header" + example);
  CHECK(wrong(std::string(7, '\xff') + "\x7f{}") ==
        file + "a header of 9223372036854775807 bytes; expected a header of 2 to 100000000 bytes" + example);
  CHECK(wrong(weights(sample()).substr(0, 100)).starts_with(file + "92 bytes of a header of "));
  CHECK(wrong(std::string("\x02\0\0\0\0\0\0\0[]", 10)) ==
        file + "a header that is not a JSON object; expected tensors by their names" + example);
  CHECK(wrong(weights({{"t", {{"dtype", "F32"}}}})) ==
        file + "{\"dtype\":\"F32\"} for the tensor t; expected its dtype and its shape" + example);
  CHECK(wrong(weights({{"t", {{"dtype", "F32"}, {"shape", {-1}}}}})).find("for the tensor t") !=
        std::string::npos);
  CHECK(wrong(weights({{"t", {{"dtype", "F32"}, {"shape", {1LL << 40, 1LL << 40}}}}})) ==
        file + "1.21e+24 elements of the tensor t; expected a tensor that fits a machine" + example);
  CHECK(wrong(weights({{"__metadata__", {{"a", "b"}}}})).find("got files without tensors") !=
        std::string::npos);
  Json header = sample();
  CHECK(wrong(weights(header)) == "accepted");
  write_all(folder / "model.safetensors.index.json", R"({"weight_map": {"t": "c.safetensors"}})");
  CHECK(complaint(folder) ==
        "/model.safetensors.index.json:1: model.safetensors: got the file \"c.safetensors\" of the tensor t, "
        "which is "
        "missing; expected all files of the model in the folder" +
            example);
  write_all(folder / "model.safetensors.index.json",
            R"({"weight_map": {"t": "b.safetensors", "u": "a.safetensors"}})");
  write_all(folder / "b.safetensors", weights(header));
  CHECK(complaint(folder).find("which " + (folder / "a.safetensors") +
                               " contains as well; expected one model") != std::string::npos);
  write_all(
      folder / "b.safetensors",
      weights({{"model.layers.2.mlp.experts.4.up_proj.weight", {{"dtype", "BF16"}, {"shape", {6, 8}}}}}));
  CHECK(complaint(folder).find(
            "got 4 experts in layer 1 (model.layers.1.mlp.experts.0.down_proj.weight) and 5 in "
            "layer 2") != std::string::npos);
}

TEST_CASE("weights: numbers that no model has, and experts of unknown number") {
  const auto complaint_about = [](const std::string& name, const std::vector<std::int64_t>& shape) {
    const Folder folder;
    Json header = Json::object();
    add_weight(header, name, shape);
    add_weight(header, "model.layers.0.norm.weight", {8});
    write_all(folder / "model.safetensors", weights(header));
    return complaint(folder);
  };
  CHECK(complaint_about("model.layers.0.a", {1LL << 26, 1LL << 26}) == "accepted");
  CHECK(complaint_about("model.layers.123456.a", {8})
            .find("got layer 123456; expected at most 100000 layers") != std::string::npos);
  CHECK(
      complaint_about("model.layers.0.experts.999999.a", {8}).find("got 1000000 experts with 8 parameters") !=
      std::string::npos);
  CHECK(complaint_about("model.layers.0.experts.a", {8, 8}).find("does not tell the number of experts") !=
        std::string::npos);
  const Folder folder;
  Json header = Json::object();
  for (const char* name : {"a", "b", "c"}) add_weight(header, name, {1LL << 26, 1LL << 26});
  write_all(folder / "model.safetensors", weights(header));
  CHECK(complaint(folder).find("got more than 1e16 parameters") != std::string::npos);
}

TEST_CASE("model.safetensors in a scenario: the answer says what was taken as experts") {
  const Folder folder;
  write_all(folder / "model.safetensors", weights(sample()));
  write_all(folder / "s.toml", kScenario);
  const Ran ran = run_in(folder.path(), "fomoe simulate s.toml --rounds 1");
  CHECK_MESSAGE(ran.exit_status == 0, ran.err);
  CHECK(ran.out.find("the tensors named like model.layers.1.mlp.experts.0.down_proj.weight") !=
        std::string::npos);
  const Ran shared =
      run_in(folder.path(), "fomoe cost s.toml --set strategy.method=fomoe --set strategy.expert_overlap=2");
  CHECK_MESSAGE(shared.exit_status == 0, shared.err);
  CHECK(shared.out.find("please confirm") != std::string::npos);
  CHECK(run_in(folder.path(), "fomoe cost s.toml --set model.active_experts=2").exit_status == 0);
  const Ran many = run_in(folder.path(), "fomoe cost s.toml --set model.active_experts=5");
  CHECK(many.exit_status == 2);
  CHECK(many.err.find("got active_experts = 5 with experts = 4") != std::string::npos);
  Json dense = Json::object();
  add_weight(dense, "model.embed_tokens.weight", {20, 8});
  write_all(folder / "model.safetensors", weights(dense));
  const Ran none = run_in(folder.path(), "fomoe cost s.toml --set model.active_experts=2");
  CHECK(none.exit_status == 2);
  CHECK(none.err.find(
            "--set model.active_experts=2: model.active_experts: got active_experts with weights in which "
            "no tensor was taken as an expert") == 0);
  CHECK(
      run_in(folder.path(), "fomoe cost s.toml --set model.safetensors=absent").err.find("no such folder") !=
      std::string::npos);
  const Ran both =
      run_in(folder.path(), "fomoe cost s.toml --set model.safetensors=. --set model.preset=small");
  CHECK(both.err.find("expected only one description of the model") != std::string::npos);
  const Ran lonely = run_in(folder.path(), "fomoe cost s.toml --set model.multi_token_prediction=true");
  CHECK(lonely.exit_status == 2);
  CHECK(lonely.err.find("got multi_token_prediction without hf_config") != std::string::npos);
}

TEST_CASE("a shape file gives the shape that was written, and its guesses") {
  const Folder folder;
  const GuessedModel model = read_header(folder, sample());
  write_all(folder / "shape.json", scenario::to_text(scenario::shape_file_json(model)));
  const GuessedModel again = scenario::read_shape_file(folder / "shape.json");
  CHECK(again.shape == model.shape);
  CHECK(again.notes.size() + 1 == model.notes.size());  // without the one that is computed
  for (const char* name : {"deepseek-v3", "gpt-oss-20b", "qwen3-30b-a3b"}) {
    const Ran ran = run_in(folder.path(), "fomoe model " + source_dir() + "/experiments/models/" + name +
                                              ".json --output m.json");
    CHECK_MESSAGE(ran.exit_status == 0, ran.err);
    CHECK(run_in(folder.path(), "fomoe model m.json").out ==
          run_in(folder.path(), "fomoe model " + source_dir() + "/experiments/models/" + name + ".json").out);
  }
}

TEST_CASE("a wrong shape file: the message has the key, its value and the expected one") {
  const Folder folder;
  const Json good = {{"schema", "fomoe.model/1"},
                     {"model",
                      {{"name", "m"},
                       {"architecture", "mixtral"},
                       {"d_model", 8},
                       {"layers", 4},
                       {"heads", 2},
                       {"experts", 4},
                       {"active_experts", 2},
                       {"d_expert", 6},
                       {"vocabulary", 20},
                       {"sequence_length", 0}}}};
  const auto complaint_about = [&](const char* key, const Json& value) -> std::string {
    Json changed = good;
    changed["model"][key] = value;
    write_all(folder / "m.json", changed.dump());
    try {
      (void)scenario::read_shape_file(folder / "m.json");
    } catch (const FileError& error) {
      return std::string(error.what()).substr((folder / "m.json").size());
    }
    return "accepted";
  };
  CHECK(complaint_about("layers", 4) == "accepted");
  CHECK(complaint_about("active_experts", 5)
            .starts_with(": model.active_experts: got 5; expected at most experts = 4"));
  CHECK(complaint_about("active_experts", 0).find("expected at least 1") != std::string::npos);
  CHECK(complaint_about("dense_layers", 5).find("got 5; expected at most layers = 4") != std::string::npos);
  CHECK(complaint_about("kv_heads", 3).find("got 3; expected a divisor of heads = 2") != std::string::npos);
  CHECK(complaint_about("d_model", 0).find("model.d_model: got 0") != std::string::npos);
  CHECK(complaint_about("window_layers", 5).find("window_layers: got 5; expected at most layers = 4") !=
        std::string::npos);
  CHECK(complaint_about("heads", 0).find("model.heads: got 0") != std::string::npos);
  CHECK(complaint_about("vocabulary", 1e9).find("at most 100000000") != std::string::npos);
  CHECK(complaint_about("d_model", 100'000'000).find("expected at most 1e16 parameters") !=
        std::string::npos);
  CHECK(complaint_about("moe_layer_list", {1, 1}).find("expected ascending indices") != std::string::npos);
  CHECK(complaint_about("moe_layer_list", {1, 4}).find("moe_layer_list") != std::string::npos);
  CHECK(complaint_about("linear", {{"kind", "unheard_of"}}).find("got") != std::string::npos);
  CHECK(complaint_about("attention_gate", "big").find("one of none, per_element, per_head") !=
        std::string::npos);
  CHECK(complaint_about("opaque", {{"dense_parameters", 10}, {"expert_parameters", 8}})
            .find("experts: got 4") != std::string::npos);
  for (const char* key :
       {"prediction_modules", "norms_per_layer", "identity_experts", "d_shared", "outer_norms"}) {
    CAPTURE(key);
    Json large = good;
    large["model"]["d_model"] = 50'000'000;
    large["model"]["head_dim"] = 2;
    large["model"]["shared_experts"] = 1;
    write_all(folder / "m.json", large.dump());
    CHECK_NOTHROW((void)scenario::read_shape_file(folder / "m.json"));
    large["model"][key] = 100'000'000;
    write_all(folder / "m.json", large.dump());
    CHECK_THROWS_WITH_AS((void)scenario::read_shape_file(folder / "m.json"),
                         doctest::Contains("expected at most 1e16 parameters"), FileError);
  }
  CHECK(complaint_about("layers", 100'001).find("got 100001; expected at most 100000") != std::string::npos);
  CHECK(complaint_about("architecture", "fomoe").find("sequence_length") == std::string::npos);
  Json family = good;
  family["model"]["architecture"] = "fomoe";
  family["model"]["norm_bias"] = true;
  write_all(folder / "m.json", family.dump());
  CHECK_THROWS_WITH_AS(
      (void)scenario::read_shape_file(folder / "m.json"),
      doctest::Contains("model.architecture: got \"fomoe\"; expected the name of another architecture"),
      FileError);
  CHECK(complaint_about("unheard_of", 1).find("an unknown key") != std::string::npos);
}
