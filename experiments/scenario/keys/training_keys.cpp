// Keys of the model, the training data and the method.
#include "experiments/scenario/keys/key_tables.hpp"

namespace fomoe::scenario {
namespace {

// These bounds keep every product of shape keys within 64 bits. The reader also checks the total.
constexpr double kMaxWidth = 1e6, kMaxLayers = 1e5, kMaxExperts = 1e6, kMaxVocabulary = 1e8;

constexpr Key kTrainingKeys[] = {
    {"", "name", Kind::text, "", "no name", "title of the scenario", "\"four sites at 1 Gb/s\""},
    {"", "description", Kind::text, "", "no description", "purpose of the scenario",
     "\"my three data centres\""},
    {"", "seed", Kind::count, "42", "", "seed of all random numbers, such as random placements", "7", 9e15,
     0},

    {"model", "preset", Kind::choice, "", "the shape keys below describe the model",
     "a model of the FoMoE paper", "\"medium\""},
    {"model", "hf_config", Kind::text, "", "no config file",
     "a model's Hugging Face config.json, relative to this file", "\"../models/mixtral-8x7b.json\""},
    {"model", "multi_token_prediction", Kind::boolean, "false", "",
     "whether the config's multi-token-prediction modules count in parameters, FLOPs and memory; needs "
     "hf_config",
     "true"},
    {"model", "safetensors", Kind::text, "", "no weights",
     "folder with a model's *.safetensors files, relative to this file; only their headers are read, and the "
     "answer says which tensors were taken as experts",
     "\"../weights/my-model\""},
    {"model", "shape", Kind::text, "", "no shape file",
     "file that `fomoe model` or Python's fomoe.model_from_transformers wrote, relative to this file",
     "\"my-model.json\""},
    {"model", "dense_parameters", Kind::count, "", "counted from the shape",
     "number of parameters outside of experts, for a model of which only parameter counts are known", "124e6",
     1e16},
    {"model", "expert_parameters", Kind::count, "", "the model has no experts",
     "number of parameters of all experts in all layers together; needs dense_parameters", "1.6e9", 1e16},
    {"model", "d_model", Kind::count, "", "from the preset", "width of the residual stream", "512",
     kMaxWidth},
    {"model", "layers", Kind::count, "", "from the preset", "number of transformer blocks", "16", kMaxLayers},
    {"model", "heads", Kind::count, "", "from the preset",
     "number of attention heads; d_model ÷ heads must be even", "8", kMaxWidth},
    {"model", "experts", Kind::count, "", "from the preset",
     "number of experts in each layer, N_e; 0: a dense model", "16", kMaxExperts, 0},
    {"model", "active_experts", Kind::count, "", "from the preset",
     "number of experts that process each token, k", "4", kMaxExperts},
    {"model", "d_expert", Kind::count, "", "from the preset", "hidden width of one expert", "128", kMaxWidth},
    {"model", "d_ffn", Kind::count, "", "active_experts × d_expert",
     "hidden width of the feed-forward blocks of a dense model, with experts = 0", "512", kMaxWidth},
    {"model", "vocabulary", Kind::count, "", "from the preset", "number of distinct tokens", "32000",
     kMaxVocabulary},
    {"model", "sequence_length", Kind::count, "2048", "", "number of tokens in a sequence", "2048", 1e8},

    {"workload", "tokens", Kind::count, "", "", "number of training tokens, over all sites", "1.34e9"},
    {"workload", "global_batch_sequences", Kind::count, "", "global_batch_tokens is given",
     "number of sequences in an optimiser step, over all sites", "1024", 1e12},
    {"workload", "global_batch_tokens", Kind::count, "", "global_batch_sequences is given",
     "number of tokens in an optimiser step, over all sites", "2097152"},
    {"workload", "batch", Kind::choice, "\"equal\"", "",
     "parts of the batch: equal ones, or parts in proportion to the speed of each site's GPUs, so that steps "
     "take equally long everywhere",
     "\"balanced\""},

    {"strategy", "method", Kind::choice, "", "", "the training method (`fomoe list methods`)", "\"fomoe\""},
    {"strategy", "local_steps", Kind::count, "1", "",
     "number of optimiser steps between two synchronisations, K; ddp ignores it", "32", 1e12},
    {"strategy", "expert_overlap", Kind::count, "", "the number of sites: every site holds every expert",
     "number of sites that hold each expert, O_e", "2", kMaxSites},
    {"strategy", "placement", Kind::choice, "\"fixed\"", "", "method that assigns experts to sites",
     "\"fixed\""},
    {"strategy", "routing_counts", Kind::text, "", "no counts; placement = \"affinity\" needs them",
     "CSV file, relative to this file, with the columns layer,expert,site,count: layers and experts count "
     "from 0, and count is the number of the site's tokens that chose the expert",
     "\"routing.csv\""},
    {"strategy", "reshuffle_rounds", Kind::count, "1", "",
     "number of rounds, T, after which a random placement is drawn anew", "4", 1e12},
    {"strategy", "skip_token", Kind::boolean, "false", "",
     "whether a token skips the experts that its site does not hold", "true"},
    {"strategy", "overlap_steps", Kind::count, "", "1 for streaming_diloco, otherwise 0",
     "number of local steps with which a synchronisation may overlap, with streaming_diloco", "4", 1e12, 0},
    {"strategy", "fragments", Kind::count, "",
     "about 25 MiB of layers in a bucket for ddp, three layers per fragment for streaming_diloco, one layer "
     "per unit for fsdp, otherwise 1",
     "number of parts of the model that are synchronised in turn; their transfers overlap with local steps "
     "for streaming_diloco, and with the backward pass for ddp",
     "4", kMaxLayers},
    {"strategy", "outer_optimizer", Kind::choice, "\"nesterov\"", "",
     "optimiser that applies the mean of the sites' parameter differences; average and local_adamw average "
     "the parameters instead",
     "\"nesterov\""},
    {"strategy", "outer_state_on_migration", Kind::choice, "\"reset_all_owners\"", "",
     "handling of an expert's outer momentum when the sites that hold the expert change: all of them "
     "reset it, or it is sent with the expert",
     "\"transfer\""},
    {"strategy", "moment1_period", Kind::count, "3", "",
     "number of rounds between two synchronisations of the first moment, with des_loc", "3", 1000},
    {"strategy", "moment2_period", Kind::count, "6", "",
     "number of rounds between two synchronisations of the second moment, with des_loc", "6", 1000},
    {"strategy", "global_period", Kind::count, "4", "",
     "number of rounds between two averages over all regions, with hierarchical_diloco", "8", 1e6},
    {"strategy", "staleness", Kind::count, "", "no site waits for a slower one",
     "number of rounds that a site may be ahead of the slowest site, with async_diloco", "2", 1e6, 0},
    {"strategy", "quorum", Kind::count, "", "the number of sites: a synchronisation waits for all",
     "number of sites that must be ready before a synchronisation may begin without the others; the work of "
     "the others in this round is lost, and they fetch the newest state",
     "6", kMaxSites},
    {"strategy", "straggler_timeout", Kind::latency, "\"0s\"", "",
     "time for which a synchronisation waits for the other sites when the quorum is ready", "\"10s\""},
    {"strategy", "dynamic_local_steps", Kind::boolean, "false", "",
     "whether a slow site has fewer local steps in a cycle, in proportion to its speed (DyLU), with "
     "async_diloco without staleness",
     "true"},
    {"strategy", "gossip_peers", Kind::count, "1", "",
     "number of sites that each site exchanges parameters with in a round, with gossip", "1", kMaxSites},
    {"strategy", "collective", Kind::choice, "\"ring\"", "", "collective algorithm of a synchronisation",
     "\"ring\""},
    {"strategy", "ring_order", Kind::choice, "\"best\"", "",
     "order of the sites in a ring: the given order, or the order whose slowest hop (latency + chunk / rate) "
     "takes the least time",
     "\"given\""},
    {"strategy", "bucket_bytes", Kind::size, "", "one call for the whole payload",
     "largest payload of one call of a collective; the calls of a synchronisation run one after another",
     "\"25MiB\""},
    {"strategy", "granularity", Kind::choice, "\"flat\"", "",
     "payload of one call of a collective: flat for the whole payload, tensor for one tensor per call",
     "\"tensor\""},
    {"strategy", "fragment_pattern", Kind::choice, "\"strided\"", "",
     "layers of a fragment with streaming_diloco: strided (every P-th of P fragments), sequential, or "
     "balanced (fragments of about equal bytes, with the embedding)",
     "\"sequential\""},
    {"strategy", "layerwise", Kind::boolean, "false", "",
     "whether each layer is sent as soon as the last backward pass has left it, and the next forward pass "
     "waits for it, with diloco and streaming_diloco; ddp does this with fragments",
     "true"},
    {"strategy", "sharding", Kind::choice, "\"full_shard\"", "",
     "with fsdp: full_shard reduces gradients in every micro-batch, full_shard_no_sync once in a step; "
     "shard_grad_op keeps gathered parameters during the step; hybrid_shard shards inside each site only",
     "\"full_shard\""},
    {"strategy", "payload_dtype", Kind::choice, "",
     "the method's format: int4 for diloco_x and streaming_diloco, int2 without scales for sparse_loco, fp32 "
     "for demo, bf16 for others",
     "number format on the wire; int8, int4 and int2 have one fp32 scale per 256 values, unless the "
     "method selects values to send",
     "\"bf16\""},
    {"strategy", "parameter_dtype", Kind::choice, "",
     "payload_dtype if it has at least 16 bits and there is no compression, otherwise bf16",
     "number format of parameters, moments and outer state on the wire", "\"bf16\""},
    {"strategy", "dispatch_dtype", Kind::choice, "", "payload_dtype",
     "number format of what is sent to experts, with expert_parallel_wan; fp8 has one fp32 scale per 128 "
     "values; what comes back has payload_dtype",
     "\"fp8\""},
    {"strategy", "overlap_dispatch", Kind::boolean, "false", "",
     "whether a site computes two halves of its batch in turn, so that the activations of one half travel to "
     "experts and back while the other half computes, with expert_parallel_wan",
     "true"},
    {"strategy.compression", "kind", Kind::choice, "", "", "method that selects the values to send",
     "\"top_k\""},
    {"strategy.compression", "kept_share", Kind::share, "", "", "share of the values that are sent",
     "0.015625"},
    {"strategy.compression", "index_bits", Kind::count, "12", "",
     "bits for the position of each value that is sent", "12", 64, 0},
    {"strategy.compression", "entropy_coded", Kind::boolean, "false", "",
     "whether positions are entropy-coded: they then take the entropy of a position instead of index_bits",
     "true"},
    {"strategy", "regions", Kind::count, "1", "",
     "number of equal groups of consecutive sites, with collective = \"hierarchical\" or hierarchical_diloco",
     "2", kMaxSites},
    {"strategy", "secure_aggregation", Kind::boolean, "false", "",
     "whether sites send masked 32-bit integers, so that only the sum of the payloads can be read", "true"},
    {"strategy", "router", Kind::choice, "\"uniform\"", "",
     "model of how tokens spread over experts, for methods with experts on other sites", "\"uniform\""},
    {"strategy", "capacity_factor", Kind::multiple, "", "buffers hold all rows that arrive",
     "capacity of an expert's buffer as a multiple of the mean load, with expert_parallel_wan; buffers are "
     "sent and computed whole",
     "1.25", 1000},
    {"strategy", "max_sites_per_token", Kind::count, "", "no limit",
     "largest number of sites that hold the experts of one token, with expert_parallel_wan", "4", kMaxSites},
    {"strategy", "micro_batches", Kind::count, "8", "",
     "number of parts in which a pipeline processes its batch, with pipeline_wan", "16", 4096},
    {"strategy", "stage_sites", Kind::count, "1", "",
     "number of consecutive sites that form a pipeline stage, with pipeline_wan; each of them belongs to a "
     "pipeline of its own, with an equal part of the batch",
     "2", kMaxSites},
    {"strategy", "schedule", Kind::choice, "\"gpipe\"", "",
     "order of the micro-batches with pipeline_wan: all forward passes first (gpipe), or forward and "
     "backward passes in turn (1f1b), which keeps fewer activations",
     "\"1f1b\""},
    {"strategy", "module_levels", Kind::count, "1", "",
     "number of consecutive modules in a path, with di_paco", "2", 1000},
    {"strategy", "module_choices", Kind::count, "1", "",
     "number of alternative modules at each level, with di_paco", "4", kMaxSites},
};

}  // namespace

std::span<const Key> training_keys() { return kTrainingKeys; }

}  // namespace fomoe::scenario
