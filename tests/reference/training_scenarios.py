"""Runs of experiments/data/measured_memory.csv as scenarios: the config of a model, and the scenario that names it."""


def config(run):
    """A Hugging Face config with the run's model."""
    shape = {"hidden_size": int(run.d_model), "num_hidden_layers": int(run.layers), "num_attention_heads": int(run.heads), "hidden_act": "silu",
             "num_key_value_heads": int(run.kv_heads), "intermediate_size": int(run.d_ffn), "vocab_size": int(run.vocabulary),
             "tie_word_embeddings": run.tied == "yes", "attention_bias": False, "mlp_bias": False, "max_position_embeddings": int(run.sequence)}
    if run.attention == "mla":
        return shape | {"model_type": "deepseek_v3", "q_lora_rank": int(run.q_rank) or None, "kv_lora_rank": int(run.kv_rank), "v_head_dim": int(run.value_dim),
                        "qk_rope_head_dim": int(run.rope_dim), "qk_nope_head_dim": int(run.head_dim), "n_routed_experts": int(run.experts),
                        "num_experts_per_tok": int(run.active_experts), "moe_intermediate_size": int(run.d_expert), "num_nextn_predict_layers": 0,
                        "first_k_dense_replace": int(run.dense_layers), "n_shared_experts": int(run.shared_width // run.d_expert) or None}
    shape |= {"model_type": "llama", "head_dim": int(run.head_dim)}
    if run.experts:
        shape |= {"model_type": "mixtral", "num_local_experts": int(run.experts), "num_experts_per_tok": int(run.active_experts),
                  "intermediate_size": int(run.d_expert)}
    return shape


def scenario(run):
    data = int(run.gpus / run.tensor_parallel / run.pipeline_parallel / run.context_parallel)
    compute = {"stack": run.stack, "step_time": "1s", "gpus_per_site": int(run.gpus), "micro_batch_sequences": int(run.micro_batch), "logits": run.logits,
               "sequence_parallel": run.sequence_parallel == "yes"}
    for degree in ("tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel", "expert_tensor_parallel", "virtual_stages"):
        compute[degree] = int(getattr(run, degree))
    if run.context_exchange:
        compute["context_exchange"] = run.context_exchange
    if run.zero_stage:
        compute["sharded"] = data
        if data * run.context_parallel > 1:
            compute["zero_stage"] = int(run.zero_stage)
    if run.checkpointing == "full":
        compute["activation_checkpointing"] = True
    if run.checkpointing == "selective_op":
        compute["selective_checkpointing"] = "operators"
    return {"model": {"hf_config": "config.json", "sequence_length": int(run.sequence)},
            "workload": {"tokens": 1e9, "global_batch_sequences": int(run.micro_batch * run.micro_batches * data)},
            "strategy": {"method": "centralised"}, "platform": {"sites": 1, "bandwidth": "1Gbps", "latency": "1ms"}, "compute": compute}
