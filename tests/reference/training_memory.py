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

import statistics
import sys

from torchtitan_memory import torchtitan
from training_state import (GIB, HALF, SINGLE, chunks_in_flight, layers_of_stage, matrices, matrices_of_ffn, read, stage_parameters, state,
                            tokens, vocabulary, workspaces)

# --- activations of Megatron-LM (K, with what TransformerEngine keeps) ------------------------------------------------------------------------------

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
