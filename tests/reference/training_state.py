"""What the models of training memory share: rows of experiments/data/measured_memory.csv, parameters of a GPU, its state, and a pipeline's schedule.

Letters in brackets name the sources that training_memory.py lists.
"""

import csv
import math
import pathlib
from types import SimpleNamespace

GIB, MIB = 2**30, 2**20
HALF, SINGLE = 2, 4  # bytes of a bf16 and of an fp32 element
TABLE = pathlib.Path(__file__).parents[2] / "experiments/data/measured_memory.csv"
TEXT = {"id", "stack", "model", "tied", "learned_positions", "biases", "attention", "sequence_parallel", "checkpointing", "logits", "kept_logits", "matrix_dtype", "compiled",
        "wgrad_fusion", "fused_activation", "grouped_experts", "context_exchange", "gpu", "framework", "metric", "rank", "source", "place", "opened", "role",
        "note"}


def read(path=TABLE):
    """The rows as objects: numbers are numbers, an absent value is an empty text."""
    with open(path, newline="") as file:
            return [SimpleNamespace(**{key: text if key in TEXT or not text else float(text) for key, text in row.items()}) for row in csv.DictReader(file)]


# --- parameters -------------------------------------------------------------------------------------------------------------------------------

def matrices_of_attention(run):
    """Output × input of each matrix, and whether tensor parallelism divides it. Latent attention: DeepSeek-V2, arXiv 2405.04434, section 2.1."""
    heads, d = run.heads, run.d_model
    if run.attention == "mla":
        query = run.head_dim + run.rope_dim
        queries = [(run.q_rank, d, False), (heads * query, run.q_rank, True)] if run.q_rank else [(heads * query, d, True)]
        return queries + [(run.kv_rank + run.rope_dim, d, False),
                (heads * (run.head_dim + run.value_dim), run.kv_rank, True), (d, heads * run.value_dim, True)]
    return [(heads * run.head_dim + 2 * run.kv_heads * run.head_dim, d, True), (d, heads * run.value_dim, True)]


def matrices_of_ffn(run, width):
    """The first projection holds gate and value in one matrix if there is a gate (ffn_matrices = 3)."""
    return [((run.ffn_matrices - 1) * width, run.d_model, True), (run.d_model, width, True)] if width else []


def matrices(run, moe):
    """Matrices of a layer that are not routed experts."""
    ffn = matrices_of_ffn(run, run.shared_width) + [(run.experts, run.d_model, False)] if moe else matrices_of_ffn(run, run.d_ffn)
    return matrices_of_attention(run) + ffn


def vocabulary(run):
    """Megatron pads to a multiple of 128 · tensor_parallel (M megatron/training/tokenizer, make_vocab_size_divisible_by)."""
    multiple = 128 * run.tensor_parallel if run.stack == "megatron" else 1
    return -(-run.vocabulary // multiple) * multiple


def layer_parameters(run, moe):
    """Dense parameters of a layer on one GPU, and its routed experts' there. """
    t = run.tensor_parallel
    dense = sum(out * into / (t if split else 1) for out, into, split in matrices(run, moe))
    norms = 2 * run.d_model + (run.q_rank + run.kv_rank if run.attention == "mla" else 0)
    if run.biases == "yes":
        norms *= 2  # LayerNorm
        dense += sum(out / (t if out != run.d_model else 1) for out, _, _ in matrices(run, moe))
    experts = run.experts // run.expert_parallel * run.ffn_matrices * run.d_model * run.d_expert if moe else 0
    return dense + norms, experts / run.expert_tensor_parallel


def layers_of_stage(run, stage):
    """(dense layers, layers with experts) of a pipeline stage; dense layers come first. Where stages are uneven, each has as many as the
    fullest one, in the proportion of its place."""
    each = run.layers / run.pipeline_parallel
    first = min(max(run.dense_layers - stage * each, 0), each)
    most = math.ceil(each) / each
    return most * first, most * (each - first)


def tables_of_stage(run, stage):
    """Elements of embedding tables: the first stage has the embedding and the last one the unembedding; a tied table is on both (N)."""
    first, last = stage == 0, stage == run.pipeline_parallel - 1
    table = vocabulary(run) * run.d_model / run.tensor_parallel
    tables = table * (first + last - (first and last and run.tied == "yes"))
    return tables + (run.sequence * run.d_model if first and run.learned_positions == "yes" else 0)


def stage_parameters(run, stage):
    dense, moe = layers_of_stage(run, stage)
    plain, with_experts = layer_parameters(run, False), layer_parameters(run, True)
    norm = run.d_model if stage == run.pipeline_parallel - 1 else 0
    return dense * plain[0] + moe * with_experts[0] + tables_of_stage(run, stage) + norm, moe * with_experts[1]


# --- weights, gradients, optimiser state (R) ----------------------------------------------------------------------------------------------------

def degrees(run):
    """GPUs among which the dense state and the experts' state are divided.

    Expert parallelism lies inside data parallelism: the experts are divided among e of the GPUs that share the dense state, so that both
    together are the same GPUs (M megatron/core/parallel_state.py, expert_data_parallel_size; T infra/parallelize.py; D moe/utils.py). Context
    parallelism counts as data parallelism for the state (M distributed optimizer with context parallelism; T mesh dp_shard_cp).
    """
    dense = run.gpus // (run.tensor_parallel * run.pipeline_parallel)
    expert = run.gpus // (run.pipeline_parallel * run.expert_parallel * run.expert_tensor_parallel)
    return dense, expert


def state(run, stage):
    """Weights, gradients, master weights and moments; gradients are 0 where the framework frees them between steps (T zero_grad)."""
    total = {"weights": 0.0, "gradients": 0.0, "optimizer": 0.0}
    for parameters, degree in zip(stage_parameters(run, stage), degrees(run)):
        total["weights"] += run.weight_bytes * parameters / (degree if run.zero_stage >= 3 else 1)
        total["gradients"] += run.gradient_bytes * parameters / (degree if run.zero_stage >= 2 else 1)
        total["optimizer"] += (run.master_bytes + run.moment_bytes) * parameters / (degree if run.zero_stage >= 1 else 1)
    return total


# --- micro-batches ------------------------------------------------------------------------------------------------------------------------------------

def tokens(run):
    return run.micro_batch * run.sequence / run.context_parallel


def chunks_in_flight(run, stage):
    """Micro-batches (of all layers of a stage) whose activations exist at once, in layers of a stage / virtual_stages (N fig. 4; M schedules.py)."""
    p, v, n = run.pipeline_parallel, run.virtual_stages, run.micro_batches
    if p == 1:
        return 1.0
    if v == 1:
        return float(min(p - stage, n))
    return min(2 * (p - stage - 1) + (v - 1) * p + 1, n * v) / v


# --- libraries of matrix products ---------------------------------------------------------------------------------------------------------------------

def workspaces(run):
    """cuBLAS: 32 MiB for each thread with a handle on Hopper and later, 8.1 MiB before (P aten/src/ATen/cuda/CublasHandlePool.cpp); the forward and
    the backward pass have a thread each. TransformerEngine: 32 MiB or 4 MiB (pytorch/module/base.py), four more for grouped products."""
    large = not run.gpu.startswith("A")
    torch = 2 * (32 if large else 8.125)
    engine = (32 if large else 4) * (5 if run.grouped_experts == "yes" else 1) if run.stack == "megatron" else 0
    return MIB * (torch + engine)
