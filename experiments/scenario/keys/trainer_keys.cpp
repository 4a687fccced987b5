// Keys that only a real training reads.
#include "experiments/scenario/keys/key_tables.hpp"
#include "experiments/scenario/keys/members.hpp"

namespace fomoe::scenario {
namespace {

constexpr Key kTrainerKeys[] = {
    {"learning_rate", Values(Kind::multiple, 10), "0.01", "",
     "learning rate of the inner AdamW at the base width and depth; CompleteP scales it to the model",
     "0.01"},
    {"warmup_steps", Values(Kind::count, 1e9, 0), "0", "",
     "number of optimiser steps until the learning rate is reached", "160"},
    {"schedule", Kind::choice, "\"constant\"", "",
     "learning rate after the warm-up; cosine: falls along half a cosine until the end of the run; wsd: "
     "falls linearly in the last decay_steps",
     "\"cosine\"", one_of<"constant", "cosine", "wsd">},
    {"decay_steps", Values(Kind::count, 1e12), "", "none",
     "number of steps of the decay, with schedule = \"wsd\"", "2000"},
    {"final_rate_share", Kind::share, "0.1", "",
     "learning rate at the end of the run as a share of learning_rate, unless the schedule is constant",
     "0.1"},
    {"beta1", Values(Kind::share, 0.99999), "0.9", "", "decay of the first moment of the inner AdamW", "0.9"},
    {"beta2", Values(Kind::share, 0.99999), "0.95", "", "decay of the second moment of the inner AdamW",
     "0.95"},
    {"epsilon", Values(Kind::multiple, 1), "1e-8", "",
     "epsilon of the inner AdamW at the base width and depth; CompleteP scales it to the model", "1e-8"},
    {"rate_transfer", Kind::choice, "\"complete_p\"", "",
     "whether CompleteP scales the learning rate and epsilon of hidden matrices with width and depth, or "
     "none of them is scaled",
     "\"none\"", one_of<"complete_p", "none">},
    {"weight_decay", Values(Kind::multiple, 10), "", "none", "weight decay of the inner AdamW", "0.1"},
    {"clip_norm", Values(Kind::multiple, 1e9), "", "no clipping",
     "norm to which a site's gradients are clipped before each optimiser step", "1.0"},
    {"balance_weight", Values(Kind::multiple, 1e3), "", "no load-balancing loss",
     "weight of the load-balancing loss, which is added to the cross-entropy", "0.01"},
    {"rope_theta", Values(Kind::multiple, 1e12), "10000", "",
     "base of the rotary position embedding: the pair i of a head of h values turns by rope_theta^(−2i/h) at "
     "each position",
     "500000"},
    {"router_temperature", Values(Kind::multiple, 1e6), "1.0", "",
     "number by which the router's scores are divided before the sigmoid that makes gates of them; the "
     "choice of experts stays the same",
     "2.0"},
    {"restart_warmup_steps", Values(Kind::count, 1e9, 0), "", "local_steps",
     "number of warm-up steps of the learning rate for an expert that came from another site", "32"},
    {"outer_learning_rate", Values(Kind::multiple, 10), "", "0.7 for nesterov, 0.1 for adam and yogi",
     "learning rate of the outer optimiser", "0.7"},
    {"outer_momentum", Values(Kind::share, 0.9999), "0.9", "", "momentum of the outer Nesterov optimiser",
     "0.9"},
    {"kept_share", Values(Kind::share, 0.9999), "0.5", "",
     "share of its own progress that a site keeps when a fragment arrives during training", "0.5"},
    {"data", Kind::text, "", "synthetic data from a Markov chain",
     "file of token ids, .bin (uint16, or uint32 if the vocabulary exceeds 65,536) or .npy, or folder of "
     "such files, of which each sub-folder is a domain; relative to this file",
     "\"corpus.bin\""},
    {"data_split", Kind::choice, "\"shared\"", "",
     "which data a site trains on; shared: any; iid: a random part of its own; domain: whole domains, so "
     "that sites have about as many tokens",
     "\"domain\"", one_of<"shared", "iid", "domain">},
    {"validation_data", Kind::text, "", "the end of the data",
     "file or folder of token ids that are used only for validation, relative to this file",
     "\"validation.bin\""},
    {"validation_sequences", Values(Kind::count, 1e9, 0), "32", "",
     "number of sequences that are used only for validation: the first ones of validation_data, or the last "
     "ones of the data, as many from each domain",
     "256"},
    {"validation_rounds", Values(Kind::count, 1e12), "", "after the last round only",
     "number of rounds between two validations", "10"},
    {"checkpoint_rounds", Values(Kind::count, 1e12), "1", "",
     "number of rounds between two checkpoints, with --checkpoints", "10"},
    {"device", Kind::choice, "\"auto\"", "",
     "device that trains; auto is cuda if there is a GPU, otherwise cpu", "\"cpu\"",
     one_of<"auto", "cpu", "cuda">},
    {"dtype", Kind::choice, "", "bf16 with fp32 masters on a GPU, fp32 on a CPU",
     "number format of weights and activations in forward and backward", "\"fp32\"", one_of<"fp32", "bf16">},
    {"cuda_graph", Kind::choice, "\"auto\"", "",
     "use of CUDA graphs; on: a step is recorded once and launched as a whole; off: kernel by kernel; auto: "
     "on if possible",
     "\"off\"", one_of<"auto", "on", "off">},
    {"deterministic", Kind::boolean, "false", "",
     "true: only algorithms that give the same bits each time, so that a resumed run on a GPU equals one "
     "that was not interrupted; slower for long sequences",
     "true"},
    {"initial_weights", Kind::text, "", "random weights",
     "folder of a model that `fomoe-train export` wrote, relative to this file; training starts from it",
     "\"exported\""},
    {"transport", Kind::choice, "\"gloo\"", "",
     "what carries messages between sites: gloo is TCP; nccl needs a GPU of its own for every site, and "
     "sends one transfer after another; auto is nccl if every site has such a GPU, otherwise gloo",
     "\"nccl\"", one_of<"gloo", "nccl", "auto">},
    {"on_divergence", Kind::choice, "\"stop\"", "",
     "reaction to a loss or gradients that are not finite; stop: all sites stop; skip_step: the optimiser "
     "leaves out the step",
     "\"skip_step\"", one_of<"stop", "skip_step">},
    {"timeout", Kind::duration, "\"5min\"", "",
     "time for which a site waits for another before it treats it as lost", "\"30s\""},
    {"on_lost_site", Kind::choice, "", "failures.policy with --checkpoints and [failures], otherwise stop",
     "reaction to a lost site; stop: all sites stop; wait: all sites wait until it has been started again, "
     "and go on from the newest checkpoint that all have; drop: the others go on without it, and it gets the "
     "newest state from them when it comes back",
     "\"wait\"", one_of<"stop", "wait", "drop">},
    {"lost_site_timeout", Kind::duration, "\"1h\"", "",
     "time for which on_lost_site = \"wait\" waits for a lost site before all sites stop", "\"24h\""},
    {"drop_after", Kind::duration, "", "failures.timeout, otherwise 1min",
     "time for which on_lost_site = \"drop\" waits for a lost site before the others go on without it",
     "\"10s\""},
};

}  // namespace

std::vector<Key> trainer_keys() { return keys_in("trainer", kTrainerKeys); }

}  // namespace fomoe::scenario
