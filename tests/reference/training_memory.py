"""Memory of one GPU in training, term by term, for the stacks that people train with. A second implementation beside `fomoe`'s.

A run is a row of experiments/data/measured_memory.csv, whose columns measured_memory.md explains. Bytes unless a name says GiB.
Nothing here is fitted to a measurement: a term is there because the source named beside it allocates it.

Sources:
  K  Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models", arXiv 2205.05198, section 4
  R  Rajbhandari et al. 2020, "ZeRO", arXiv 1910.02054, sections 3 and 5
  N  Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters", arXiv 2104.04473, section 2.2
  M  Megatron-LM at 23e00ed0 (October 2025), with TransformerEngine 2.8; the file is named beside the term
  T  torchtitan at 9dec370 (December 2024); layers with experts at 003edbe5 (October 2025), models/moe/moe.py and distributed/expert_parallel.py
  P  PyTorch 2.x; the file is named beside the term
  D  DeepSpeed 0.14, deepspeed/runtime/zero
"""

import csv
import pathlib
import statistics
import sys
from types import SimpleNamespace

GIB, MIB = 2**30, 2**20
HALF, SINGLE = 2, 4  # bytes of a bf16 and of an fp32 element
TABLE = pathlib.Path(__file__).parents[2] / "experiments/data/measured_memory.csv"
TEXT = {"id", "stack", "model", "tied", "learned_positions", "biases", "attention", "sequence_parallel", "checkpointing", "logits", "matrix_dtype", "compiled",
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
    """(dense layers, layers with experts) of a pipeline stage; dense layers come first."""
    each = int(run.layers // run.pipeline_parallel)
    first = [layer < run.dense_layers for layer in range(stage * each, (stage + 1) * each)]
    return sum(first), each - sum(first)


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


# --- activations of Megatron-LM (K, with what TransformerEngine keeps) ------------------------------------------------------------------------------

def tokens(run):
    return run.micro_batch * run.sequence / run.context_parallel


def attention_elements(run):
    """Elements a token keeps inside attention, of all tensor-parallel GPUs: queries, keys, values, output. Flash attention keeps no scores."""
    query = run.head_dim + run.rope_dim
    keys = run.heads * query if run.attention == "mla" else run.kv_heads * run.head_dim
    values = (run.heads if run.attention == "mla" else run.kv_heads) * run.value_dim
    out = run.heads * run.value_dim
    # All-to-all context parallelism keeps the output before it is exchanged, beside the input of the output projection
    # (TE attention/dot_product_attention/context_parallel.py, AttnFuncWithCPAndQKVOA2A).
    return run.heads * query + keys + values + out * (2 if run.context_exchange == "all_to_all" else 1)


def megatron_layer(run, moe):
    """Bytes that one layer keeps for a micro-batch (K eq. 2 and 4 without scores), by what divides them."""
    d, t, s = run.d_model, run.tensor_parallel, run.tensor_parallel if run.sequence_parallel == "yes" else 1
    dropout = 2 if run.dropout else 0  # masks of 1 byte, after attention and after the feed-forward block
    along_sequence = HALF * 4 * d + dropout * d  # input and output of both norms
    whole = 0
    if run.attention == "mla":
        whole = HALF * (2 * run.q_rank + 2 * run.kv_rank + run.rope_dim)  # inputs and outputs of the latents' norms
    split = HALF * attention_elements(run) + SINGLE * run.heads  # and the logarithm of the softmax's sum
    if moe:
        rows = run.active_experts
        # A copy of the token, gate and value, and their product, for each expert (moe/experts.py, TEGroupedMLP). Scores: fp32.
        if run.fused_activation == "no":
            split += HALF * rows * run.d_expert  # the product before it is scaled by the router's weight (M transformer/mlp.py, per_token_scale)
        # Tensor-parallel experts gather the rows of their group, so that each GPU keeps `expert_tensor_parallel` times as many inputs.
        split += HALF * rows * (d * run.expert_tensor_parallel + run.ffn_matrices * run.d_expert) + SINGLE * 2 * run.experts
        split += HALF * run.ffn_matrices * run.shared_width
    else:
        split += HALF * run.ffn_matrices * run.d_ffn
    return tokens(run) * (along_sequence / s + whole / s + split / t)


def layer_backward(run, moe):
    """The most that the backward pass of one layer adds to what is kept: gradients of gate and value while their product is freed."""
    s = run.tensor_parallel if run.sequence_parallel == "yes" else 1
    width = run.active_experts * run.d_expert + run.shared_width if moe else run.d_ffn
    rows = run.active_experts * run.d_model * run.expert_tensor_parallel / run.tensor_parallel if moe else 0
    return HALF * tokens(run) * ((run.ffn_matrices - 1) * width / run.tensor_parallel + rows + run.d_model / s)


def chunks_in_flight(run, stage):
    """Micro-batches (of all layers of a stage) whose activations exist at once, in layers of a stage / virtual_stages (N fig. 4; M schedules.py)."""
    p, v, n = run.pipeline_parallel, run.virtual_stages, run.micro_batches
    if p == 1:
        return 1.0
    if v == 1:
        return float(min(p - stage, n))
    return min(2 * (p - stage - 1) + (v - 1) * p + 1, n * v) / v


def layer_inputs(run, stage):
    """What full recomputation keeps: the input of each layer (K section 5)."""
    s = run.tensor_parallel if run.sequence_parallel == "yes" else 1
    return chunks_in_flight(run, stage) * sum(layers_of_stage(run, stage)) * HALF * run.d_model * tokens(run) / s


def kinds(run, stage):
    """The kinds of layers that a stage has: whether they have experts."""
    return [kind for kind, count in zip((False, True), layers_of_stage(run, stage)) if count]


def distinct_matrices(run, stage):
    """Elements of one matrix of each shape on a GPU of this stage."""
    shapes = set()
    for kind in kinds(run, stage):
        # The router's matrix is a plain product without this buffer (M moe/router.py).
        shapes.update((out, into, out * into / (run.tensor_parallel if split else 1)) for out, into, split in matrices(run, kind) if out != run.experts)
        if kind:
            shapes.update((out, into, out * into / run.expert_tensor_parallel) for out, into, _ in matrices_of_ffn(run, run.d_expert))
    if stage == run.pipeline_parallel - 1:
        shapes.add((vocabulary(run), run.d_model, vocabulary(run) * run.d_model / run.tensor_parallel))
    return sum(elements for _, _, elements in shapes)


def workspaces(run):
    """cuBLAS: 32 MiB for each thread with a handle on Hopper and later, 8.1 MiB before (P aten/src/ATen/cuda/CublasHandlePool.cpp); the forward and
    the backward pass have a thread each. TransformerEngine: 32 MiB or 4 MiB (pytorch/module/base.py), four more for grouped products."""
    large = not run.gpu.startswith("A")
    torch = 2 * (32 if large else 8.125)
    engine = (32 if large else 4) * (5 if run.grouped_experts == "yes" else 1) if run.stack == "megatron" else 0
    return MIB * (torch + engine)


def loss(run):
    """Bytes of the loss and of the backward pass of the unembedding, beside all activations."""
    n, d, s = tokens(run), run.d_model, run.tensor_parallel if run.sequence_parallel == "yes" else 1
    logits = n * vocabulary(run) / run.tensor_parallel
    norm = HALF * 2 * n * d / s  # input and output of the last norm
    back = HALF * n * d * (1 + 1 / s if s > 1 else 1)
    if run.logits == "bf16_fused":  # gradients overwrite the logits (TE triton/cross_entropy.py)
        return norm + HALF * logits + back
    # fp32 softmax, and bf16 logits in the forward pass or their gradient in the backward pass (M tensor_parallel/cross_entropy.py).
    wgrad = HALF * vocabulary(run) * d / run.tensor_parallel if run.wgrad_fusion == "no" else 0
    # "fp32_fused": compiled functions do not share the fp32 copy with the exponentials (M fusions/fused_cross_entropy.py).
    copies = 2 * SINGLE + HALF if run.logits == "fp32_fused" else SINGLE + HALF
    return norm + max(copies * logits, HALF * logits + back + wgrad)


def megatron(run, stage):
    """Bytes by term of a GPU of a pipeline stage."""
    terms = state(run, stage)
    last = stage == run.pipeline_parallel - 1
    terms["workspaces"] = workspaces(run)
    terms["kept_buffers"] = 0.0
    if run.wgrad_fusion == "yes":
        # A gradient that was added to the fp32 buffer is replaced by an empty bf16 one, kept for each shape (TE module/base.py, get_dummy_wgrad).
        terms["kept_buffers"] += HALF * distinct_matrices(run, stage)
    if last and run.sequence_parallel == "yes":
        terms["kept_buffers"] += HALF * tokens(run) * run.d_model  # input of the unembedding, gathered (M tensor_parallel/layers.py, buffer "mpu")
    if run.metric == "allocated_end":
        return terms
    kept = {kind: megatron_layer(run, kind) for kind in kinds(run, stage)}
    backward = {kind: layer_backward(run, kind) for kind in kept}
    if run.checkpointing == "full":
        # A layer is recomputed after the logits are gone.
        terms["activations"] = layer_inputs(run, stage)
        moments = [kept[kind] + backward[kind] for kind in kept]
    else:
        terms["activations"] = chunks_in_flight(run, stage) * sum(count * kept.get(kind, 0) for kind, count in zip((False, True), layers_of_stage(run, stage)))
        moments = list(backward.values())
    terms["at_the_peak"] = max(moments + ([loss(run)] if last else []))
    return terms


# --- torchtitan: FSDP2 in PyTorch -----------------------------------------------------------------------------------------------------------------

def torchtitan_layer(run, moe, whole):
    """Bytes of a token in one layer: those that the checkpointing keeps, or (`whole`) all that the recomputed layer holds for its backward pass."""
    d, q, out = run.d_model, run.heads * (run.head_dim + run.rope_dim), run.heads * run.value_dim
    t, s = run.tensor_parallel, run.tensor_parallel if run.sequence_parallel == "yes" else 1
    if run.checkpointing == "full" and not whole:
        return HALF * d / s
    values = out if run.attention == "mla" else run.kv_heads * run.value_dim
    if run.checkpointing == "selective_op" and not whole:
        # Outputs of attention and of every second product: queries, values, gate, down projection (T parallelize_llama.py, _save_list). Grouped
        # products are not in the list.
        return HALF * 2 * d / s + (HALF * (q + out + values + (run.shared_width if moe else run.d_ffn)) + SINGLE * run.heads) / t
    # Both norms keep their bf16 input (P rms_norm), and the products their outputs. Attention keeps queries, keys and values of all heads, its output, and
    # the copy of it that the projection reads. With latents, keys are put together from the expanded latents, which stay because the values are part of them.
    # Gate, its activation, value, product. With tensor parallelism, inputs that were gathered along the sequence are kept so.
    expanded = run.heads * (run.head_dim + run.value_dim) if run.attention == "mla" else out
    latents = 2 * run.q_rank + 2 * run.kv_rank + run.rope_dim if run.attention == "mla" else 0
    split = HALF * (2 * q + expanded + 2 * out) + SINGLE * run.heads
    if moe:
        # The rows of a token's experts: the input of the first products in bf16, and, where the router's weight is multiplied, fp32 (moe.py, MoE.forward).
        split += HALF * 4 * (run.active_experts * run.d_expert + run.shared_width) + (HALF + SINGLE) * run.active_experts * d + SINGLE * run.experts
    else:
        split += HALF * 4 * run.d_ffn
    return HALF * 4 * d / s + split / t + (HALF * 2 * d if s > 1 else 0) + HALF * latents


def torchtitan(run, stage):
    """Allocated at the fullest moment, and for a reserved peak what PyTorch's allocator keeps in addition: memory freed on one stream is not
    given to another (P c10/cuda/CUDACachingAllocator.cpp), so that the peaks of FSDP2's streams add up (P distributed/fsdp/_fully_shard)."""
    n, t = tokens(run), run.tensor_parallel
    s = t if run.sequence_parallel == "yes" else 1
    dense_degree, _ = degrees(run)
    dense, moe = layers_of_stage(run, stage)
    plain, experts = layer_parameters(run, False), layer_parameters(run, True)
    layer = max(plain[0] if dense else 0, sum(experts) if moe else 0)
    table = vocabulary(run) * run.d_model / t
    every = state(run, stage)
    terms = {"weights": every["weights"], "optimizer": every["optimizer"], "workspaces": workspaces(run)}
    # bf16 copies of the tables in the root's group, and of the last layer, which is not sharded again after the forward pass.
    terms["gathered"] = HALF * (run.gathered_tables * table + layer)
    terms["activations"] = n * sum(count * torchtitan_layer(run, kind, False) for kind, count in ((False, dense), (True, moe)))
    logits = n * vocabulary(run) / t
    # The unembedding's input is gathered along the sequence and kept so, as in each layer (T apply_tp, ColwiseParallel of Shard(1)).
    norm = n * run.d_model * ((SINGLE + 3 * HALF) / s + (HALF if s > 1 else 0))
    # Whole fp32 logits: softmax, its gradient, and the gradient of the logits; with tensor parallelism an exponential in addition
    # (P distributed/tensor/parallel/loss.py, _nll_loss_and_log_softmax_backward). Compiled: bf16 logits and their gradient.
    at_loss = ((3 + (t > 1)) * SINGLE if run.logits == "fp32_whole" else 2 * HALF) * logits + norm
    # First layer of the backward pass: recomputed, its gathered successor, bf16 gradients of it and of a table, fp32 input of the reduction.
    # With experts, the gradient of their rows where the router's weight is multiplied: bf16, its fp32 copy, and the product.
    recomputed = 0 if run.checkpointing == "none" else torchtitan_layer(run, bool(moe), True)
    rows = (HALF + 2 * SINGLE) * run.active_experts * run.d_model / t if moe else 0
    at_layer = n * (recomputed + rows) + HALF * (layer + layer + table) + SINGLE * layer
    # Last: all gradients, and the tables' in bf16 and in fp32 for the reduction.
    at_end = every["gradients"] + (HALF + SINGLE) * 2 * table - terms["activations"]
    terms["at_the_peak"] = max(at_loss, at_layer, at_end)
    if run.metric == "reserved_peak":
        terms["stream_of_gathers"] = HALF * max(run.gathered_tables * table, 2 * layer) * (0.5 if run.matrix_dtype == "fp8" and layer > table else 1)
        terms["stream_of_reductions"] = every["gradients"]
        if run.logits == "fp32_whole":
            terms["logits_block"] = HALF * logits  # the bf16 logits' block is too small for what follows and stays free
    return terms


# --- DeepSpeed with transformers ------------------------------------------------------------------------------------------------------------------

def deepspeed(run, stage):
    n, d, a, kv, f = tokens(run), run.d_model, run.heads * run.head_dim, run.kv_heads * run.head_dim, run.d_ffn
    parameters = sum(stage_parameters(run, stage))
    terms = state(run, stage)
    terms["workspaces"] = workspaces(run)
    terms["buffers"] = HALF * min(5e8, parameters)  # reduce_bucket_size (D config)
    if run.zero_stage == 3:
        terms["gathered"] = HALF * min(1e9, parameters)  # stage3_max_live_parameters
    # modeling_llama.py: norms keep fp32 input, normalised input and output; products of the feed-forward block.
    layer = n * ((SINGLE + 2 * HALF) * 2 * d + HALF * (3 * a + 3 * kv + 4 * f) + SINGLE * run.heads)
    terms["activations"] = run.layers * (n * HALF * d if run.checkpointing == "full" else layer)
    # fp32 logits, their shifted copy, softmax and its gradient.
    terms["at_the_peak"] = max(4 * SINGLE * n * run.vocabulary, layer if run.checkpointing == "full" else 0)
    return terms


def fomoe(run, stage):
    """Our own trainer, as costmodel/model/activations.hpp counts it: experts' inputs and outputs are not kept, logits exist in chunks of at most 2 GiB."""
    dense, moe = layers_of_stage(run, stage)
    rest, n = attention_elements(run) + 4 * run.d_model, run.ffn_matrices
    kept = dense * HALF * (rest + n * run.d_ffn)
    kept += moe * (HALF * (rest + run.active_experts * (n - 1) * run.d_expert + run.shared_width * n) + SINGLE * run.experts)
    terms = state(run, stage)
    terms["activations"] = tokens(run) * kept * chunks_in_flight(run, stage) / run.tensor_parallel
    terms["at_the_peak"] = (HALF * run.d_model * tokens(run) + min(2 * GIB, HALF * tokens(run) * run.vocabulary)) / run.tensor_parallel
    return terms


def terms_of(run):
    """Bytes by term of the GPU that the row's value is of: the fullest one, or one of the last pipeline stage."""
    stages = range(int(run.pipeline_parallel))[-1 if run.rank == "last" else 0:]
    return max((MODELS[run.stack](run, stage) for stage in stages), key=lambda terms: sum(terms.values()))


MODELS = {"megatron": megatron, "torchtitan": torchtitan, "deepspeed": deepspeed, "fomoe": fomoe}

# What the allocator holds ÷ the estimate: the range of the rows that the model was built with, rounded outwards. The only figures here that are taken from
# measurements of the whole. Without them the estimate of Megatron's reserved memory is 3 to 7 % too low in every row.
RESERVED = {"megatron": (1.02, 1.08), "torchtitan": (0.95, 1.07)}


def predict(run, without=""):
    """GiB. Megatron's reserved memory is the middle of its interval."""
    gib = sum(value for term, value in terms_of(run).items() if term != without) / GIB
    if run.stack == "megatron" and run.metric == "reserved_peak":
        gib *= sum(RESERVED["megatron"]) / 2
    return gib


def reserved_interval(run):
    middle = sum(RESERVED["megatron"]) / 2 if run.stack == "megatron" else 1
    return [bound * predict(run) / middle for bound in RESERVED[run.stack]]


def outside_allocator(run):
    """GiB that no PyTorch counter shows: the CUDA context, about 0.3 GiB with kernels loaded lazily (pytorch/pytorch issue 107667), and buffers of each
    communicator, 544 MB among two and 688 MB among more GPUs (NVIDIA/nccl issue 964, four A100). At least one communicator."""
    data = run.gpus // (run.tensor_parallel * run.pipeline_parallel * run.context_parallel)
    sizes = [size for size in (data, run.tensor_parallel, run.pipeline_parallel, run.context_parallel, run.expert_parallel) if size > 1]
    return 0.3 + sum(544 if size == 2 else 688 for size in sizes) * 1e6 / GIB


def group(run):
    """Rows whose errors are counted together."""
    if run.stack == "megatron" and run.metric != "reserved_peak":
        return f"megatron, {'at least' if run.value_gib >= 16 else 'below'} 16 GiB, {run.metric}"
    return f"{run.stack}, {run.metric}"


def errors(rows, without=""):
    """Relative errors of the rows, by group."""
    groups = {}
    for run in rows:
        groups.setdefault(group(run), []).append(predict(run, without) / run.value_gib - 1)
    return groups


def main():
    """training_memory.py [build] [check] [second_check] [without=TERM]: the rows with these roles, and the errors of each group."""
    words = sys.argv[1:] or ["build"]
    without = next((word[8:] for word in words if word.startswith("without=")), "")
    rows = [run for run in read() if run.role in words]
    for run in rows:
        terms = " ".join(f"{term} {value / GIB:.3f}" for term, value in terms_of(run).items())
        print(f"{predict(run, without):9.3f} {run.value_gib:9.3f} {100 * (predict(run, without) / run.value_gib - 1):+7.2f} % {run.id}  {terms}")
    for name, values in errors(rows, without).items():
        sizes = sorted(map(abs, values))
        print(f"{name}: {len(values)} rows, median {100 * statistics.median(sizes):.2f} %, worst {100 * max(values, key=abs):+.2f} %")


if __name__ == "__main__":
    main()
