// Keys that only a real training reads.
#include "experiments/scenario/keys/members.hpp"
#include "experiments/scenario/keys/trainer_settings.hpp"

namespace fomoe::scenario {
namespace {

/// A member of the settings: a number, a flag, or the name of a choice.
template <auto Field, Text... Names>
constexpr KeyMember trainer = {.names = names<Names...>,
                               .set_trainer = [](TrainerSettings& settings, double value) {
                                 if constexpr (sizeof...(Names) > 0)
                                   settings.*Field = names<Names...>()[static_cast<std::size_t>(value)];
                                 else
                                   assign(settings.*Field, value);
                               }};

constexpr Key kTrainerKeys[] = {
    {"learning_rate", Values(Kind::multiple, 10), "0.01", "",
     "learning rate of the inner AdamW at the base width and depth; CompleteP scales it to the model", "0.01",
     trainer<&TrainerSettings::learning_rate>},
    {"warmup_steps", Values(Kind::count, 1e9, 0), "", "a quarter of the run's steps, as in the paper",
     "number of optimiser steps until the learning rate is reached", "160",
     trainer<&TrainerSettings::warmup_steps>},
    {"schedule", Kind::choice, "\"constant\"", "",
     "learning rate after the warm-up; cosine: falls along half a cosine until the end of the run; wsd: "
     "falls linearly in the last decay_steps",
     "\"cosine\"", trainer<&TrainerSettings::schedule, "constant", "cosine", "wsd">},
    {"decay_steps", Values(Kind::count, 1e12), "", "none",
     "number of steps of the decay, with schedule = \"wsd\"", "2000", trainer<&TrainerSettings::decay_steps>},
    {"final_rate_share", Kind::share, "0.1", "",
     "learning rate at the end of the run as a share of learning_rate, unless the schedule is constant",
     "0.1", trainer<&TrainerSettings::final_rate_share>},
    {"beta1", Values(Kind::share, 0.99999), "0.9", "", "decay of the first moment of the inner AdamW", "0.9",
     trainer<&TrainerSettings::beta1>},
    {"beta2", Values(Kind::share, 0.99999), "0.95", "", "decay of the second moment of the inner AdamW",
     "0.95", trainer<&TrainerSettings::beta2>},
    {"epsilon", Values(Kind::multiple, 1), "1e-8", "",
     "epsilon of the inner AdamW at the base width and depth; CompleteP scales it to the model", "1e-8",
     trainer<&TrainerSettings::epsilon>},
    {"rate_transfer", Kind::choice, "\"complete_p\"", "",
     "whether CompleteP scales the learning rate and epsilon of hidden matrices with width and depth, or "
     "none of them is scaled",
     "\"none\"", trainer<&TrainerSettings::rate_transfer, "complete_p", "none">},
    {"inner_moments", Kind::choice, "\"keep\"", "",
     "what a site does with the moments of its inner AdamW at the start of a round; keep: it goes on with "
     "them; restart: it forgets them, so that sites are stateless between rounds. Methods that average "
     "moments need keep",
     "\"restart\"", trainer<&TrainerSettings::inner_moments, "keep", "restart">},
    {"weight_decay", Values(Kind::multiple, 10), "", "none",
     "weight decay λ of the inner AdamW: a matrix loses η·λ of its values in a step, at every width; norms "
     "do not decay",
     "0.1", trainer<&TrainerSettings::weight_decay>},
    {"clip_norm", Values(Kind::multiple, 1e9), "", "no clipping",
     "norm to which a site's gradients are clipped before each optimiser step", "1.0",
     trainer<&TrainerSettings::clip_norm>},
    {"balance_weight", Values(Kind::multiple, 1e3), "", "no load-balancing loss",
     "weight of the load-balancing loss, which is added to the cross-entropy", "0.01",
     trainer<&TrainerSettings::balance_weight>},
    {"rope_theta", Values(Kind::multiple, 1e12), "10000", "",
     "base of the rotary position embedding: the pair i of a head of h values turns by rope_theta^(−2i/h) at "
     "each position",
     "500000", trainer<&TrainerSettings::rope_theta>},
    {"router_temperature", Values(Kind::multiple, 1e6), "1.0", "",
     "number by which the router's scores are divided before the sigmoid that makes gates of them; the "
     "choice of experts stays the same",
     "2.0", trainer<&TrainerSettings::router_temperature>},
    {"restart_warmup_steps", Values(Kind::count, 1e9, 0), "", "local_steps",
     "number of warm-up steps of the learning rate for an expert that came from another site", "32",
     trainer<&TrainerSettings::restart_warmup_steps>},
    {"outer_learning_rate", Values(Kind::multiple, 10), "", "0.7 for nesterov, 0.1 for adam and yogi",
     "learning rate of the outer optimiser", "0.7", trainer<&TrainerSettings::outer_learning_rate>},
    {"outer_momentum", Values(Kind::share, 0.9999, 0), "",
     "0.9, or 0 with sparse_loco, whose error feedback stands in its place",
     "momentum of the outer Nesterov optimiser", "0.9", trainer<&TrainerSettings::outer_momentum>},
    {"kept_share", Values(Kind::share, 0.9999), "0.5", "",
     "share of its own progress that a site keeps when a fragment arrives during training", "0.5",
     trainer<&TrainerSettings::kept_share>},
    {"error_feedback_decay", Values(Kind::share, 1, 0), "1.0", "",
     "factor on what lossy pseudo-gradients have kept back, before it is added to the next ones: β of "
     "SparseLoCo, "
     "whose authors let it decay",
     "0.95", trainer<&TrainerSettings::error_feedback_decay>},
    {"data", Kind::text, "", "synthetic data from a Markov chain",
     "file of token ids, .bin (uint16, or uint32 if the vocabulary exceeds 65,536) or .npy, or folder of "
     "such files, of which each sub-folder is a domain; relative to this file",
     "\"corpus.bin\""},
    {"data_split", Kind::choice, "\"shared\"", "",
     "which data a site trains on; shared: any; iid: a random part of its own; domain: whole domains, so "
     "that sites have about as many tokens",
     "\"domain\"", trainer<&TrainerSettings::data_split, "shared", "iid", "domain">},
    {"validation_data", Kind::text, "", "the end of the data",
     "file or folder of token ids that are used only for validation, relative to this file",
     "\"validation.bin\""},
    {"validation_sequences", Values(Kind::count, 1e9, 0), "32", "",
     "number of sequences that are used only for validation: the first ones of validation_data, or the last "
     "ones of the data, as many from each domain",
     "256", trainer<&TrainerSettings::validation_sequences>},
    {"validation_rounds", Values(Kind::count, 1e12), "", "after the last round only",
     "number of rounds between two validations", "10", trainer<&TrainerSettings::validation_rounds>},
    {"checkpoint_rounds", Values(Kind::count, 1e12), "1", "",
     "number of rounds between two checkpoints, with --checkpoints", "10",
     trainer<&TrainerSettings::checkpoint_rounds>},
    {"device", Kind::choice, "\"auto\"", "",
     "device that trains; auto is cuda if there is a GPU, otherwise cpu", "\"cpu\"",
     trainer<&TrainerSettings::device, "auto", "cpu", "cuda">},
    {"dtype", Kind::choice, "", "bf16 with fp32 masters on a GPU, fp32 on a CPU",
     "number format of weights and activations in forward and backward", "\"fp32\"",
     trainer<&TrainerSettings::dtype, "fp32", "bf16">},
    {"cuda_graph", Kind::choice, "\"auto\"", "",
     "use of CUDA graphs; on: a step is recorded once and launched as a whole; off: kernel by kernel; auto: "
     "on if possible",
     "\"off\"", trainer<&TrainerSettings::cuda_graph, "auto", "on", "off">},
    {"deterministic", Kind::boolean, "false", "",
     "true: only algorithms that give the same bits each time, so that a resumed run on a GPU equals one "
     "that was not interrupted; slower for long sequences",
     "true", trainer<&TrainerSettings::deterministic>},
    {"initial_weights", Kind::text, "", "random weights",
     "folder of a model that `fomoe-train export` wrote, relative to this file; training starts from it",
     "\"exported\""},
    {"transport", Kind::choice, "\"gloo\"", "",
     "what carries messages between sites: gloo is TCP; nccl needs a GPU of its own for every site, and "
     "sends one transfer after another; auto is nccl if every site has such a GPU, otherwise gloo",
     "\"nccl\"", trainer<&TrainerSettings::transport, "gloo", "nccl", "auto">},
    {"on_divergence", Kind::choice, "\"stop\"", "",
     "reaction to a loss or gradients that are not finite; stop: all sites stop; skip_step: the optimiser "
     "leaves out the step",
     "\"skip_step\"", trainer<&TrainerSettings::on_divergence, "stop", "skip_step">},
    {"timeout", Kind::duration, "\"5min\"", "",
     "time for which a site waits for another before it treats it as lost", "\"30s\"",
     trainer<&TrainerSettings::timeout_s>},
    {"on_lost_site", Kind::choice, "", "failures.policy with --checkpoints and [failures], otherwise stop",
     "reaction to a lost site; stop: all sites stop; wait: all sites wait until it has been started again, "
     "and go on from the newest checkpoint that all have; drop: the others go on without it, and it gets the "
     "newest state from them when it comes back",
     "\"wait\"", trainer<&TrainerSettings::on_lost_site, "stop", "wait", "drop">},
    {"lost_site_timeout", Kind::duration, "\"1h\"", "",
     "time for which on_lost_site = \"wait\" waits for a lost site before all sites stop", "\"24h\"",
     trainer<&TrainerSettings::lost_site_timeout_s>},
    {"drop_after", Kind::duration, "", "failures.timeout, otherwise 1min",
     "time for which on_lost_site = \"drop\" waits for a lost site before the others go on without it",
     "\"10s\"", trainer<&TrainerSettings::drop_after_s>},
};

}  // namespace

std::vector<Key> trainer_keys() { return keys_in("trainer", kTrainerKeys); }

}  // namespace fomoe::scenario
