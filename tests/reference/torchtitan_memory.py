"""Memory of one GPU that trains with torchtitan: FSDP2 in PyTorch. The sources are listed in training_memory.py.

A pipeline gathers a stage's weights once and keeps them (T parallelize_llama.py, apply_fsdp: reshard_after_forward is off).
"""

from training_state import HALF, SINGLE, chunks_in_flight, degrees, layer_parameters, layers_of_stage, stage_parameters, state, tokens, vocabulary, workspaces


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


def whole_gradients(run, parameters):
    """A pipeline adds the gradients of all micro-batches in fp32 and reduces them at the end (P distributed/pipelining/stage.py,
    backward_maybe_with_nosync). Where each micro-batch passes once, a chunk's gradients are reduced before the next chunk's exist."""
    return SINGLE * parameters / (run.virtual_stages if run.micro_batches <= run.pipeline_parallel else 1)


def outputs_of_stage(run, stage):
    """What a pipeline keeps of its outputs: those in flight (P stage.py, fwd_cache), and a buffer for the gradient of each micro-batch
    (grad_recv_info). The last chunk has logits instead; until October 2025 it kept those of all micro-batches (output_chunks; T pull request 1922)."""
    s = run.tensor_parallel if run.sequence_parallel == "yes" else 1
    chunk = (chunks_in_flight(run, stage) + run.micro_batches) * HALF * tokens(run) * run.d_model / s
    if stage < run.pipeline_parallel - 1:
        return run.virtual_stages * chunk
    kept = run.micro_batches if run.kept_logits == "all" else chunks_in_flight(run, stage)
    return (run.virtual_stages - 1) * chunk + kept * HALF * tokens(run) * vocabulary(run) / run.tensor_parallel


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
    terms["activations"] = chunks_in_flight(run, stage) * n * sum(count * torchtitan_layer(run, kind, False) for kind, count in ((False, dense), (True, moe)))
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
    if run.pipeline_parallel > 1:
        whole = sum(stage_parameters(run, stage))
        terms["gathered"] = HALF * whole
        terms["gradients"] = whole_gradients(run, whole)
        terms["outputs"] = outputs_of_stage(run, stage)
        at_layer = n * (recomputed + rows) + HALF * (layer + (table if stage == run.pipeline_parallel - 1 else 0))
        at_loss = at_loss if stage == run.pipeline_parallel - 1 else 0
    # Last: all gradients, and the tables' in bf16 and in fp32 for the reduction.
    at_end = every["gradients"] + (HALF + SINGLE) * 2 * table - terms["activations"]
    terms["at_the_peak"] = max(at_loss, at_layer, at_end)
    if run.metric == "reserved_peak":
        pipeline = run.pipeline_parallel > 1
        last = stage == run.pipeline_parallel - 1
        tables = (last if pipeline else run.gathered_tables) * table
        fp8 = run.matrix_dtype == "fp8" and layer > table and not pipeline
        terms["stream_of_gathers"] = HALF * max(tables, 2 * layer) * (0.5 if fp8 else 1)
        terms["stream_of_reductions"] = every["gradients"]
        if run.logits == "fp32_whole" and last:
            terms["logits_block"] = HALF * logits  # the bf16 logits' block is too small for what follows and stays free
    return terms
