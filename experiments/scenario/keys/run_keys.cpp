// Keys of what a run costs and yields, of failures, and of the trainer.
#include "experiments/scenario/keys/key_tables.hpp"

namespace fomoe::scenario {
namespace {

constexpr Key kRunKeys[] = {
    {"prices", "file", Kind::text, "", "prices are given here, or there are none",
     "price file, relative to this file", "\"../data/prices-example.toml\""},
    {"prices", "pricing", Kind::choice, "\"on_demand\"", "", "kind of GPU price to take from the file",
     "\"spot\""},
    {"prices", "gpu_hour", Kind::money, "", "from the file", "price of one GPU for one hour", "\"2.50USD\""},
    {"prices", "egress_per_gb", Kind::money, "", "from the file, or free",
     "price of 10⁹ bytes that a site sends to another site", "\"0.08USD\""},
    {"prices", "port_month", Kind::money, "", "from the file, or free",
     "price of a site's dedicated links for one month; each month that has begun is charged", "\"1600USD\""},
    {"prices", "kwh", Kind::money, "", "from the file, or included in the GPU's price",
     "price of one kWh of electricity, with [energy]", "\"0.12USD\""},
    {"prices", "as_of", Kind::text, "", "from the file, or not stated", "date of the prices",
     "\"2026-01-15\""},

    {"energy", "gpu_power", Kind::power, "", "the accelerator's board power",
     "power of the board of one busy GPU", "\"700W\""},
    {"energy", "idle_share", Kind::share, "", "", "share of gpu_power that an idle GPU draws", "0.2"},
    {"energy", "pue", Kind::factor, "1.0", "",
     "power usage effectiveness: power of the building ÷ power of the GPUs", "1.2"},

    {"quality", "model", Kind::choice, "", "no quality in the answer, unless file is given",
     "model that predicts perplexity", "\"paper-table\""},
    {"quality", "file", Kind::text, "", "model is used, or the answer contains no quality",
     "your own table of measured perplexities, relative to this file", "\"../data/paper_exp1.csv\""},
    {"quality", "interpolate", Kind::boolean, "false", "",
     "whether values between a table's measured K and O_e are interpolated, in log K and O_e; the answer "
     "marks them",
     "true"},
    {"quality", "equal_loss_factor", Kind::factor, "", "from the model, or unknown",
     "assumed factor on time and cost until a method that does not synchronise in each step reaches the loss "
     "of "
     "data-parallel training",
     "1.1"},

    {"failures", "site_mtbf", Kind::duration, "", "sites do not fail",
     "mean time between failures of one site, including all of its nodes", "\"7d\""},
    {"failures", "link_mtbf", Kind::duration, "", "links do not fail",
     "mean time between failures of one site's link", "\"30d\""},
    {"failures", "preemptions_per_day", Kind::multiple, "", "no site is preempted",
     "mean number of preemptions per day of one site of spot instances; each costs the same as a failure",
     "0.5", 1e4},
    {"failures", "detection_time", Kind::latency, "\"30s\"", "", "time until a failure is noticed",
     "\"30s\""},
    {"failures", "restart_time", Kind::latency, "\"10min\"", "",
     "time that a site needs to restart, without the transfer of its training state", "\"10min\""},
    {"failures", "link_repair", Kind::latency, "\"10min\"", "", "time until a failed link is repaired",
     "\"1h\""},
    {"failures", "links_stay_dead", Kind::boolean, "false", "", "whether a failed link is never repaired",
     "true"},
    {"failures", "checkpoint_rounds", Kind::count, "", "checkpoint_time, or the interval by Daly's formula",
     "number of rounds between two checkpoints", "10", 1e12},
    {"failures", "checkpoint_time", Kind::duration, "",
     "checkpoint_rounds, or the interval by Daly's formula",
     "time between two checkpoints, rounded to whole rounds", "\"1h\""},
    {"failures", "checkpoint_cost", Kind::latency, "", "bytes of a site's training state ÷ storage_bandwidth",
     "time for which all sites stop for a checkpoint", "\"20s\""},
    {"failures", "storage_bandwidth", Kind::rate, "", "checkpoint_cost is given",
     "bandwidth of the storage to which each site writes its training state", "\"2GBps\""},
    {"failures", "policy", Kind::choice, "\"wait\"", "",
     "reaction to a failed site: wait for it and restart from the checkpoint, or drop it until it returns",
     "\"drop\""},
    {"failures", "timeout", Kind::latency, "", "the time-out that the report recommends",
     "time for which the other sites wait for a lost site, with policy = \"drop\"", "\"2min\""},
    {"failures", "outages", Kind::words, "", "none",
     "outages at given times, which the simulation executes, each as \"SITE at TIME for TIME\": when the "
     "site "
     "stops, and after how long it is back without its training state",
     "[\"site-1 at 10min for 3min\"]"},
    {"failures", "samples", Kind::count, "1000", "", "number of random samples of the run", "1000", 1e6},

    {"trainer", "learning_rate", Kind::multiple, "0.01", "",
     "learning rate of the inner AdamW at the base width and depth; CompleteP scales it to the model", "0.01",
     10},
    {"trainer", "warmup_steps", Kind::count, "0", "",
     "number of optimiser steps until the learning rate is reached", "160", 1e9, 0},
    {"trainer", "schedule", Kind::choice, "\"constant\"", "",
     "learning rate after the warm-up; cosine: falls along half a cosine until the end of the run; wsd: "
     "falls "
     "linearly in the last decay_steps",
     "\"cosine\""},
    {"trainer", "decay_steps", Kind::count, "", "none",
     "number of steps of the decay, with schedule = \"wsd\"", "2000", 1e12},
    {"trainer", "final_rate_share", Kind::share, "0.1", "",
     "learning rate at the end of the run as a share of learning_rate, unless the schedule is constant",
     "0.1"},
    {"trainer", "beta1", Kind::share, "0.9", "", "decay of the first moment of the inner AdamW", "0.9",
     0.99999},
    {"trainer", "beta2", Kind::share, "0.95", "", "decay of the second moment of the inner AdamW", "0.95",
     0.99999},
    {"trainer", "epsilon", Kind::multiple, "1e-8", "",
     "epsilon of the inner AdamW at the base width and depth; CompleteP scales it to the model", "1e-8", 1},
    {"trainer", "rate_transfer", Kind::choice, "\"complete_p\"", "",
     "whether CompleteP scales the learning rate and epsilon of hidden matrices with width and depth, or "
     "none of them "
     "is scaled",
     "\"none\""},
    {"trainer", "weight_decay", Kind::multiple, "", "none", "weight decay of the inner AdamW", "0.1", 10},
    {"trainer", "clip_norm", Kind::multiple, "", "no clipping",
     "norm to which a site's gradients are clipped before each optimiser step", "1.0", 1e9},
    {"trainer", "balance_weight", Kind::multiple, "", "no load-balancing loss",
     "weight of the load-balancing loss, which is added to the cross-entropy", "0.01", 1e3},
    {"trainer", "rope_theta", Kind::multiple, "10000", "",
     "base of the rotary position embedding: the pair i of a head of h values turns by rope_theta^(−2i/h) at "
     "each position",
     "500000", 1e12},
    {"trainer", "router_temperature", Kind::multiple, "1.0", "",
     "number by which the router's scores are divided before the sigmoid that makes gates of them; the "
     "choice of experts stays the same",
     "2.0", 1e6},
    {"trainer", "restart_warmup_steps", Kind::count, "", "local_steps",
     "number of warm-up steps of the learning rate for an expert that came from another site", "32", 1e9, 0},
    {"trainer", "outer_learning_rate", Kind::multiple, "", "0.7 for nesterov, 0.1 for adam and yogi",
     "learning rate of the outer optimiser", "0.7", 10},
    {"trainer", "outer_momentum", Kind::share, "0.9", "", "momentum of the outer Nesterov optimiser", "0.9",
     0.9999},
    {"trainer", "kept_share", Kind::share, "0.5", "",
     "share of its own progress that a site keeps when a fragment arrives during training", "0.5", 0.9999},
    {"trainer", "data", Kind::text, "", "synthetic data from a Markov chain",
     "file of token ids, .bin (uint16, or uint32 if the vocabulary exceeds 65,536) or .npy, or folder of "
     "such files, of which each sub-folder is a domain; relative to this file",
     "\"corpus.bin\""},
    {"trainer", "data_split", Kind::choice, "\"shared\"", "",
     "which data a site trains on; shared: any; iid: a random part of its own; domain: whole domains, so "
     "that sites have about as many tokens",
     "\"domain\""},
    {"trainer", "validation_data", Kind::text, "", "the end of the data",
     "file or folder of token ids that are used only for validation, relative to this file",
     "\"validation.bin\""},
    {"trainer", "validation_sequences", Kind::count, "32", "",
     "number of sequences that are used only for validation: the first ones of validation_data, or the last "
     "ones of the data, as many from each domain",
     "256", 1e9, 0},
    {"trainer", "validation_rounds", Kind::count, "", "after the last round only",
     "number of rounds between two validations", "10", 1e12},
    {"trainer", "checkpoint_rounds", Kind::count, "1", "",
     "number of rounds between two checkpoints, with --checkpoints", "10", 1e12},
    {"trainer", "device", Kind::choice, "\"auto\"", "",
     "device that trains; auto is cuda if there is a GPU, otherwise cpu", "\"cpu\""},
    {"trainer", "dtype", Kind::choice, "", "bf16 with fp32 masters on a GPU, fp32 on a CPU",
     "number format of weights and activations in forward and backward", "\"fp32\""},
    {"trainer", "cuda_graph", Kind::choice, "\"auto\"", "",
     "use of CUDA graphs; on: a step is recorded once and launched as a whole; off: kernel by kernel; auto: "
     "on if possible",
     "\"off\""},
    {"trainer", "deterministic", Kind::boolean, "false", "",
     "true: only algorithms that give the same bits each time, so that a resumed run on a GPU equals one "
     "that "
     "was not interrupted; slower for long sequences",
     "true"},
    {"trainer", "initial_weights", Kind::text, "", "random weights",
     "folder of a model that `fomoe-train export` wrote, relative to this file; training starts from it",
     "\"exported\""},
    {"trainer", "transport", Kind::choice, "\"gloo\"", "",
     "what carries messages between sites: gloo is TCP; nccl needs a GPU of its own for every site, and "
     "sends "
     "one transfer after another; auto is nccl if every site has such a GPU, otherwise gloo",
     "\"nccl\""},
    {"trainer", "on_divergence", Kind::choice, "\"stop\"", "",
     "reaction to a loss or gradients that are not finite; stop: all sites stop; skip_step: the optimiser "
     "leaves out the step",
     "\"skip_step\""},
    {"trainer", "timeout", Kind::duration, "\"5min\"", "",
     "time for which a site waits for another before it treats it as lost", "\"30s\""},
    {"trainer", "on_lost_site", Kind::choice, "",
     "failures.policy with --checkpoints and [failures], otherwise stop",
     "reaction to a lost site; stop: all sites stop; wait: all sites wait until it has been started again, "
     "and go on from the newest checkpoint that all have; drop: the others go on without it, and it gets the "
     "newest state from them when it comes back",
     "\"wait\""},
    {"trainer", "lost_site_timeout", Kind::duration, "\"1h\"", "",
     "time for which on_lost_site = \"wait\" waits for a lost site before all sites stop", "\"24h\""},
    {"trainer", "drop_after", Kind::duration, "", "failures.timeout, otherwise 1min",
     "time for which on_lost_site = \"drop\" waits for a lost site before the others go on without it",
     "\"10s\""},
};

}  // namespace

std::span<const Key> run_keys() { return kRunKeys; }

}  // namespace fomoe::scenario
