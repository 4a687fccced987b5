// Keys of the method.
#include <algorithm>

#include "costmodel/methods/all.hpp"
#include "costmodel/plan/method.hpp"
#include "experiments/scenario/keys/members.hpp"

namespace fomoe::scenario {
namespace {

using costmodel::Strategy;

constexpr KeyMember any_method = {.names = [] {
  std::vector<std::string> names;
  for (const costmodel::Method& method : costmodel::methods()) names.push_back(method.name);
  return names;
}};

constexpr KeyMember wire_types = {.names = [] {
  std::vector<std::string> names = costmodel::all_names<costmodel::ElementType>();
  std::erase(names, "int32");  // the format of masked payloads, which nobody chooses
  return names;
}};
constexpr KeyMember parameter_dtype = {.set = member<&Strategy::parameter_dtype>.set,
                                       .names = wire_types.names};
constexpr KeyMember dispatch_dtype = {.set = member<&Strategy::dispatch_dtype>.set,
                                      .names = wire_types.names};

constexpr KeyMember bucket_bytes = {
    .set = [](Scenario& scenario,
              double value) { return member<&Strategy::bucket_bytes>.set(scenario, std::max(1.0, value)); },
    .get = member<&Strategy::bucket_bytes>.get};

bool set_kept_share(Scenario& scenario, double value) {
  costmodel::WireFormat& wire = scenario.strategy.wire;
  if (!wire.sparse() || value >= 1) return false;
  wire.kept_share = value;
  return true;
}
constexpr KeyMember kept_share = {.set = set_kept_share, .has_rules = true};

bool set_index_bits(Scenario& scenario, double value) {
  assign(scenario.strategy.wire.index_bits, value);
  return scenario.strategy.wire.sparse();
}
constexpr KeyMember index_bits = {.set = set_index_bits, .has_rules = true};

constexpr Key kStrategyKeys[] = {
    {"method", Kind::choice, "", "", "the training method (`fomoe list methods`)", "\"fomoe\"", any_method},
    {"local_steps", Values(Kind::count, 1e12), "1", "",
     "number of optimiser steps between two synchronisations, K; methods that synchronise in each step "
     "ignore it",
     "32", member<&Strategy::local_steps>, plan},
    {"expert_overlap", Values(Kind::count, kMaxSites), "",
     "the number of sites: every site holds every expert", "number of sites that hold each expert, O_e", "2",
     member<&Strategy::expert_overlap>, counts},
    {"placement", Kind::choice, "\"fixed\"", "",
     "method that assigns experts to sites: the same blocks of sites in every layer (fixed), blocks that "
     "begin "
     "at another site in each layer (rotated), owners that are drawn (random), or owners by routing_counts "
     "(affinity)",
     "\"fixed\"", member<&Strategy::placement>},
    {"routing_counts", Kind::text, "", "no counts; placement = \"affinity\" needs them",
     "CSV file, relative to this file, with the columns layer,expert,site,count: layers and experts count "
     "from 0, and count is the number of the site's tokens that chose the expert; with skip_token, the "
     "counts "
     "also say how many tokens each site skips",
     "\"routing.csv\""},
    {"reshuffle_rounds", Values(Kind::count, 1e12), "1", "",
     "number of rounds, T, after which a random placement is drawn anew", "4",
     member<&Strategy::reshuffle_rounds>, plan},
    {"skip_token", Kind::boolean, "false", "",
     "whether a token skips the experts that its site does not hold", "true", member<&Strategy::skip_token>},
    {"overlap_steps", Values(Kind::count, 1e12, 0), "", "1 for streaming_diloco, otherwise 0",
     "number of local steps with which a synchronisation may overlap (`fomoe list methods` says with which "
     "methods)",
     "4", member<&Strategy::overlap_steps>, counts},
    {"fragments", Values(Kind::count, kMaxLayers), "",
     "about 25 MiB of layers in a bucket for ddp, three layers per fragment for streaming_diloco, one layer "
     "per unit for fsdp, for decoupled_diloco the largest divisor of local_steps that is at most the number "
     "of layers, otherwise 1",
     "number of parts of the model that are synchronised in turn; their transfers overlap with local steps "
     "for streaming_diloco, decoupled_diloco and fomoe, and with the backward pass for ddp",
     "4", member<&Strategy::fragments>, counts},
    {"outer_optimizer", Kind::choice, "\"nesterov\"", "",
     "optimiser that applies the mean of the sites' parameter differences; average and local_adamw average "
     "the parameters instead",
     "\"nesterov\"", member<&Strategy::outer_optimizer>},
    {"outer_state_on_migration", Kind::choice, "\"reset_all_owners\"", "",
     "handling of an expert's outer momentum when the sites that hold the expert change: all of them reset "
     "it, or it is sent with the expert",
     "\"transfer\"", member<&Strategy::outer_state_on_migration>},
    {"moment1_period", Values(Kind::count, 1000), "3", "",
     "number of rounds between two synchronisations of the first moment, with des_loc", "3",
     member<&Strategy::moment1_period>, counts},
    {"moment2_period", Values(Kind::count, 1000), "6", "",
     "number of rounds between two synchronisations of the second moment, with des_loc", "6",
     member<&Strategy::moment2_period>, counts},
    {"global_period", Values(Kind::count, 1e6), "4", "",
     "number of rounds between two averages over all regions, with hierarchical_diloco", "8",
     member<&Strategy::global_period>, counts},
    {"staleness", Values(Kind::count, 1e6, 0), "", "no site waits for a slower one",
     "number of rounds that a site may be ahead of the slowest site, with async_diloco", "2",
     member<&Strategy::staleness>, counts},
    {"quorum", Values(Kind::count, kMaxSites), "", "the number of sites: a synchronisation waits for all",
     "number of sites that must be ready before a synchronisation may begin without the others; the work of "
     "the others in this round is lost, and they fetch the newest state",
     "2", member<&Strategy::quorum>, counts},
    {"straggler_timeout", Kind::latency, "\"0s\"", "",
     "time for which a synchronisation waits for the other sites when the quorum is ready", "\"10s\"",
     member<&Strategy::straggler_timeout_s>, counts},
    {"dynamic_local_steps", Kind::boolean, "false", "",
     "whether a slow site has fewer local steps in a cycle, in proportion to its speed (DyLU), with "
     "async_diloco without staleness",
     "true", member<&Strategy::dynamic_local_steps>},
    {"gossip_peers", Values(Kind::count, kMaxSites), "1", "",
     "number of sites that each site exchanges parameters with in a round, with gossip", "1",
     member<&Strategy::gossip_peers>, counts},
    {"collective", Kind::choice, "\"ring\"", "",
     "collective algorithm of a synchronisation; ring: once through each site (a ring through all GPUs, as "
     "NCCL's, sends up to twice as much over a link); chain: sites pass on what a server reduces and "
     "broadcasts, with fedavg",
     "\"ring\"", member<&Strategy::collective>},
    {"ring_order", Kind::choice, "\"best\"", "",
     "order of the sites in a ring: the given order, or the order whose slowest hop (latency + chunk / rate) "
     "takes the least time",
     "\"given\"", member<&Strategy::ring_order>},
    {"bucket_bytes", Kind::size, "", "one call for the whole payload",
     "largest payload of one call of a collective; the calls of a synchronisation run one after another",
     "\"25MiB\"", bucket_bytes, links},
    {"granularity", Kind::choice, "\"flat\"", "",
     "payload of one call of a collective: flat for the whole payload, tensor for one tensor per call",
     "\"tensor\"", member<&Strategy::granularity>},
    {"fragment_pattern", Kind::choice, "\"strided\"", "",
     "layers of a fragment with streaming_diloco and fomoe: strided (every P-th of P fragments), sequential, "
     "or "
     "balanced (fragments of about equal bytes, with the embedding)",
     "\"sequential\"", member<&Strategy::fragment_pattern>},
    {"layerwise", Kind::boolean, "false", "",
     "whether each layer is sent as soon as the last backward pass has left it, and the next forward pass "
     "waits for it, with diloco, streaming_diloco and fomoe; ddp does this with fragments",
     "true", member<&Strategy::layerwise>},
    {"sharding", Kind::choice, "\"full_shard\"", "",
     "with fsdp: full_shard reduces gradients in every micro-batch, full_shard_no_sync once in a step; "
     "shard_grad_op keeps gathered parameters during the step; hybrid_shard shards inside each site only",
     "\"full_shard\"", member<&Strategy::sharding>},
    {"payload_dtype", Kind::choice, "",
     "the method's format: int4 for diloco_x and streaming_diloco, int2 without scales for sparse_loco, fp32 "
     "for demo, bf16 for others",
     "number format on the wire; int8, int4 and int2 have one fp32 scale per 256 values, unless the method "
     "selects values to send",
     "\"bf16\"", wire_types},
    {"parameter_dtype", Kind::choice, "",
     "payload_dtype if it has at least 16 bits and there is no compression, otherwise bf16",
     "number format of parameters, moments and outer state on the wire", "\"bf16\"", parameter_dtype},
    {"dispatch_dtype", Kind::choice, "", "payload_dtype",
     "number format of what is sent to experts, with expert_parallel_wan; fp8 has one fp32 scale per 128 "
     "values; what comes back has payload_dtype",
     "\"fp8\"", dispatch_dtype},
    {"overlap_dispatch", Kind::boolean, "false", "",
     "whether a site computes two halves of its batch in turn, so that the activations of one half travel to "
     "experts and back while the other half computes, with expert_parallel_wan",
     "true", member<&Strategy::overlap_dispatch>},
    {"strategy.compression.kind", Kind::choice, "", "", "method that selects the values to send", "\"top_k\"",
     one_of<"top_k">},
    {"strategy.compression.kept_share", Kind::share, "", "", "share of the values that are sent", "0.015625",
     kept_share, counts},
    {"strategy.compression.index_bits", Values(Kind::count, 64, 0), "12", "",
     "bits for the position of each value that is sent", "12", index_bits, counts},
    {"strategy.compression.entropy_coded", Kind::boolean, "false", "",
     "whether positions are entropy-coded: they then take the entropy of a position instead of index_bits",
     "true"},
    {"regions", Values(Kind::count, kMaxSites), "1", "",
     "number of equal groups of sites, the regions of the platform or consecutive sites, with collective = "
     "\"hierarchical\" or hierarchical_diloco",
     "2", member<&Strategy::regions>, counts},
    {"secure_aggregation", Kind::boolean, "false", "",
     "whether sites send masked 32-bit integers, so that only the sum of the payloads can be read", "true",
     member<&Strategy::secure_aggregation>},
    {"router", Kind::choice, "\"uniform\"", "",
     "model of how tokens spread over experts, for methods with experts on other sites", "\"uniform\"",
     member<&Strategy::router>},
    {"capacity_factor", Values(Kind::multiple, 1000), "", "buffers hold all rows that arrive",
     "capacity of an expert's buffer as a multiple of the mean load, with expert_parallel_wan; buffers are "
     "sent and computed whole",
     "1.25", member<&Strategy::capacity_factor>, counts},
    {"max_sites_per_token", Values(Kind::count, kMaxSites), "", "no limit",
     "largest number of sites that hold the experts of one token, with expert_parallel_wan", "4",
     member<&Strategy::max_sites_per_token>, counts},
    {"micro_batches", Values(Kind::count, 4096), "8", "",
     "number of parts in which a pipeline processes its batch, with pipeline_wan", "16",
     member<&Strategy::micro_batches>, counts},
    {"stage_sites", Values(Kind::count, kMaxSites), "1", "",
     "number of consecutive sites that form a pipeline stage, with pipeline_wan; each of them belongs to a "
     "pipeline of its own, with an equal part of the batch",
     "2", member<&Strategy::stage_sites>, counts},
    {"schedule", Kind::choice, "\"gpipe\"", "",
     "order of the micro-batches with pipeline_wan: all forward passes first (gpipe), or forward and "
     "backward passes in turn (1f1b), which keeps fewer activations",
     "\"1f1b\"", member<&Strategy::schedule>},
    {"module_levels", Values(Kind::count, 1000), "1", "",
     "number of consecutive modules in a path, with di_paco", "2", member<&Strategy::module_levels>, counts},
    {"module_choices", Values(Kind::count, kMaxSites), "1", "",
     "number of alternative modules at each level, with di_paco", "4", member<&Strategy::module_choices>,
     counts},
};

}  // namespace

std::vector<Key> strategy_keys() { return keys_in("strategy", kStrategyKeys); }

}  // namespace fomoe::scenario
