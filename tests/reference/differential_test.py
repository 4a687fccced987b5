#!/usr/bin/env python3
"""Compares fomoe with the plain reference in reference.py on random scenarios, and checks properties of its answers (properties.py).

On a mismatch it prints the smallest scenario found that still differs, and exits with 1.
"""

import argparse
import collections
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import methods
import properties
import reference


class Program:
    """Runs fomoe, one process at a time, in a folder of its own."""

    def __init__(self, path, folder):
        self.path, self.folder = str(pathlib.Path(path).resolve()), pathlib.Path(folder)

    def text(self, command, keys, *options, name="s.json"):
        """Returns what fomoe writes to standard output; the scenario is JSON, or TOML if the name ends so."""
        (self.folder / name).write_text(json.dumps(keys) if name.endswith("json") else "".join(
            f"[{part}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items()) for part, table in keys.items()))
        done = subprocess.run(["nice", "-n", "5", self.path, command, name, *options], capture_output=True, text=True, cwd=self.folder)
        if done.returncode not in (0, 3):  # 3: nothing meets the limits, which the answer says too
            raise RuntimeError(f"fomoe {command} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def answer(self, command, keys, *options):
        options += ("--sensitivity", "none", "--rounds", "all") if command == "simulate" else ()
        return json.loads(self.text(command, keys, *options, "--output", "-"))


# The keys of [strategy] that change each method.
COMMON = ["local_steps", "payload_dtype", "parameter_dtype", "collective"]
READ = {"ddp": ["payload_dtype"], "centralised": [], "demo": COMMON[1::2], "fedavg": COMMON[:3], "async_diloco": COMMON[:3],
        "decoupled_diloco": COMMON[1:3],
        "diloco": COMMON + ["outer_optimizer"], "dept": COMMON + ["outer_optimizer"],
        "des_loc": COMMON + ["moment1_period", "moment2_period"], "hierarchical_diloco": COMMON + ["global_period"],
        "fomoe": COMMON + ["expert_overlap", "placement", "reshuffle_rounds", "skip_token", "outer_optimizer", "outer_state_on_migration"],
        "eager_diloco": COMMON[:2] + COMMON[3:], "diloco_x": COMMON[:2] + COMMON[3:], "sparse_loco": COMMON[:2] + COMMON[3:],
        "streaming_diloco": COMMON[:2] + COMMON[3:], "gossip": COMMON[:3], "noloco": COMMON[:3], "di_paco": COMMON[:2] + COMMON[3:],
        "fsdp": COMMON[1:] + ["sharding"], "expert_parallel_wan": COMMON[1::2] + ["dispatch_dtype", "capacity_factor", "max_sites_per_token", "router", "overlap_dispatch"],
        "remote_experts": COMMON[1::2] + ["router"],
        "pipeline_wan": COMMON[1::2] + ["micro_batches", "schedule"]}


# Methods whose closed form is exact also if sites train on unequally many sequences.
EQUAL_OR_NOT = ("centralised", "ddp", "local_sgd", "diloco", "local_adamw", "des_loc", "dept", "fomoe", "sparse_loco", "demo")


def whole_parts(rng, keys):
    """Makes the parts equal into which a method divides a model, a batch, a run or the sites. The closed form is then exact."""
    method, sites, model, work, plan = keys["strategy"]["method"], keys["platform"]["sites"], *map(keys.get, ("model", "workload", "strategy"))
    if method in ("gossip", "noloco"):
        keys["platform"]["sites"] = 2 * rng.randint(1, 4)  # each site has a partner
    if method == "gossip" and rng.random() < 0.7:
        plan["gossip_peers"] = rng.randint(1, keys["platform"]["sites"] - 1)
    if method == "hierarchical_diloco":
        plan["regions"] = rng.choice([parts for parts in range(1, sites + 1) if sites % parts == 0])
    if method == "fsdp":
        keys["compute"].pop("micro_batch_sequences", None)  # one pass, so that each unit is gathered twice at most
        plan["fragments"] = rng.choice([parts for parts in range(1, model["layers"] + 1) if model["layers"] % parts == 0])
    if method == "pipeline_wan":
        plan["stage_sites"] = rng.choice([parts for parts in range(1, sites + 1) if sites % parts == 0] + [1])
        model["layers"] = sites // plan["stage_sites"] * rng.randint(1, 4)
        work["global_batch_sequences"] *= plan.get("micro_batches", 8) * plan["stage_sites"]
    if method == "di_paco":
        levels, choices = rng.choice([(1, 1), (1, 2), (1, 3), (2, 2)])
        keys["platform"]["sites"] = choices**levels * rng.randint(1, 2)
        model["layers"] = levels * rng.randint(1, 6)
        plan |= {"module_levels": levels, "module_choices": choices}
    if plan.get("overlap_dispatch"):
        work["global_batch_sequences"] *= 2  # each site has two halves
        if plan.get("router") == "hash" and "capacity_factor" not in plan:
            del plan["router"]  # the halves of sites with unequal loads drift apart
    if method not in EQUAL_OR_NOT and method != "pipeline_wan":
        work["global_batch_sequences"] *= keys["platform"]["sites"]
    if method == "streaming_diloco":
        parts, between, rounds = rng.randint(1, model["layers"]), rng.randint(1, 60), rng.randint(1, 50)
        plan |= {"fragments": parts, "local_steps": parts * between, "overlap_steps": rng.randint(0, between - 1)}
        work["tokens"] = work["global_batch_sequences"] * model["sequence_length"] * parts * between * rounds
    if method == "decoupled_diloco":
        parts = rng.randint(1, model["layers"])
        plan |= {"fragments": parts, "local_steps": parts * rng.randint(1, 60)}
    if method == "fomoe" and rng.random() < 0.5:
        parts, between, rounds = rng.randint(1, 4), rng.randint(1, 60), rng.randint(1, 50)
        replaces = plan.get("outer_optimizer") in ("average", "local_adamw")  # would replace what is trained meanwhile
        plan |= {"fragments": parts, "local_steps": parts * between, "overlap_steps": 0 if replaces else rng.randint(0, between - 1)}
        # All sites hold equally many experts of each layer, and all fragments have equally many layers.
        model |= {"layers": parts * rng.randint(1, 4), "experts": keys["platform"]["sites"] * rng.randint(1, 5), "active_experts": 1}
        work["tokens"] = work["global_batch_sequences"] * model["sequence_length"] * parts * between * rounds
    return keys


def draw(rng, names):
    """Draws a scenario with equal sites, of one of the methods."""
    sites, heads, method = rng.randint(1, 9), rng.randint(1, 4), rng.choice(names)
    experts, rates = sites * rng.randint(1, 5) if method != "fomoe" else rng.randint(sites, 5 * sites), [f"{int(10**rng.uniform(5, 11))}bps" for _ in range(2)]
    choices = {"local_steps": rng.randint(1, 600), "payload_dtype": rng.choice(list(reference.BITS)),
               "parameter_dtype": rng.choice(["fp32", "bf16", "fp16", "int8"]), "collective": rng.choice(["ring", "direct"]),
               "moment1_period": rng.randint(1, 9), "moment2_period": rng.randint(1, 9), "expert_overlap": rng.randint(1, sites),
               "outer_optimizer": rng.choice(["nesterov", "adam", "yogi"] + ["average", "local_adamw"] * (method == "fomoe")),
               "placement": rng.choice(["fixed", "random"]), "reshuffle_rounds": rng.randint(1, 9), "skip_token": rng.random() < 0.5,
               "outer_state_on_migration": rng.choice(["transfer", "reset_all_owners"]), "global_period": rng.randint(1, 9),
               "dispatch_dtype": rng.choice(list(reference.BITS)), "micro_batches": rng.randint(1, 20), "schedule": rng.choice(["gpipe", "1f1b"]),
               "router": rng.choice(["uniform", "hash", "expert_choice"]), "overlap_dispatch": True, "capacity_factor": round(rng.uniform(1, 3), 2), "max_sites_per_token": rng.randint(1, sites),
               "sharding": rng.choice(["full_shard", "full_shard_no_sync", "shard_grad_op", "hybrid_shard"])}
    strategy = {"method": method} | {key: choices[key] for key in READ.get(method, COMMON) if rng.random() < 0.7}
    strategy |= {"fragments": 1} if method == "ddp" else {}
    strategy |= {"collective": "chain"} if method == "fedavg" and rng.random() < 0.5 else {}
    strategy |= {"staleness": 0} if method == "async_diloco" else {}  # without it, no site waits for another one: own_pace_test.cpp
    ports = {"bandwidth": rates[0]} if rng.random() < 0.5 else {"uplink": rates[0], "downlink": rates[1]}
    keys = {"model": {"d_model": heads * 2 * rng.randint(1, 64), "layers": rng.randint(1, 12), "heads": heads, "experts": experts,
                      "active_experts": rng.randint(1, experts), "d_expert": rng.randint(1, 300),
                      "vocabulary": rng.randint(1, 50000), "sequence_length": rng.randint(1, 3000)},
            "workload": {"tokens": rng.randint(1, 10**rng.randint(3, 9)), "global_batch_sequences": rng.randint(sites, 40 * sites)},
            "strategy": strategy,
            "compute": {"step_time": f"{rng.uniform(0.1, 900):.6g}ms"} if rng.random() < 0.6 else
                       {"mfu": round(rng.uniform(0.01, 1), 4), "peak_flops": f"{rng.uniform(0.1, 999):.5g}TFLOPS"},
            "platform": {"sites": sites, "latency": f"{rng.choice([0, rng.uniform(0, 200)]):.5g}ms"} | ports,
            "network_model": {"host": "ideal"}}
    more = {"micro_batch_sequences": rng.randint(1, 4), "gpus_per_site": rng.randint(1, 16), "activation_checkpointing": True, "outer_state_on": "host"}
    network = {"bandwidth_efficiency": 0.9, "latency_factor": 1.7, "background_share": rng.uniform(0.01, 0.9)}
    for part, table in (("compute", more), ("platform", {"rate_factor": rng.uniform(0.1, 9)}), ("network_model", network)):
        keys[part] = keys.get(part, {}) | {key: value for key, value in table.items() if rng.random() < 0.2}
    return whole_parts(rng, keys)


def formulas(program, keys, accounting):
    """Returns rows (quantity, expected value, value of fomoe, tolerance) of a scenario with equal sites."""
    s, cost = reference.Scenario(keys), program.answer("cost", keys, "--accounting", accounting)
    answer = program.answer("simulate", keys, "--engine", "closed-form")
    cost["memory_per_site"] |= {"host_bytes": cost["host_memory_bytes_per_site"], "total_bytes": cost["memory_bytes_per_site"]}
    cost["flops"]["total_per_token"] = cost["flops_per_token"]
    parts = {("parameters", ""): reference.parameters(s), ("memory_per_site", "_bytes"): reference.memory(s),
             ("sent_bytes_per_site", ""): reference.sent_bytes(s), ("flops", "_per_token"): reference.flops_per_token(s, accounting)}
    answer |= {f"round.{name}": value for name, value in answer["round"].items()}
    rows = [(f"{part}.{name}", value, cost[part][name + unit], 1e-9) for (part, unit), table in parts.items()
            for name, value in table.items()]
    if s.method == "decoupled_diloco":
        # Where latencies are short, a link that is used fully leaves the cycles of its users, and so times and bytes, to rounding: both
        # programs find them by bisection.
        rows = [(*row[:3], 1e-4 if row[0].startswith("sent_bytes") else row[3]) for row in rows]
        return rows + [(name, value, answer[name], 1e-4) for name, value in reference.report(s).items()]
    report = reference.report(s)
    # The reference knows owners of experts in blocks, which all do the same.
    owners_differ = any(note.startswith("the closed form takes the flows between owners") for note in answer["notes"])
    if owners_differ:
        return rows
    if properties.approximates(answer):
        # The closed form says that it is an approximation. The simulation rounds each chunk up to whole elements and scales.
        # The reference's times are those of equal sites, whose experts have equal loads if uplinks and downlinks differ.
        if s.batch % s.sites or (s.busiest > 1 and s.up != s.down):
            return rows
        wall, chunks, sent = program.answer("simulate", keys)["wall_clock_s"], 2 * s.sites * s.fragments, s.payload * reference.parameters(s)["total"]
        if s.halves == 2:  # up to six transfers of each half in each layer, to each site
            chunks, sent = 2 * s.sites * (1 + 6 * s.layers), max(1.0, sum(reference.sent_bytes(s).values()))
        rounding = 8 * chunks / sent
        return rows + [("simulated instead of closed form", report["wall_clock_s"], wall, 1e-9 + rounding)]
    # Fragments differ by the norms beside the layers, which the closed form takes as equal.
    tolerance = 1e-6 if s.method == "streaming_diloco" or (s.method == "fomoe" and s.fragments > 1) else 1e-9
    return rows + [(name, value, answer[name], tolerance) for name, value in report.items()]


def draw_links(rng, program):
    """Draws and writes a platform file with unequal links. Returns (sites, paths, latency of the other paths)."""
    n, equal = rng.randint(2, 6), rng.random() < 0.5
    default = rng.choice([0, 0.01])
    sites = [{port: int(10**rng.uniform(6, 8)) for port in ("uplink", "downlink")} for _ in range(n)]
    paths = {(i, j): (default if equal else rng.choice([0, round(rng.uniform(0.001, 0.2), 4)]), rng.choice([None, int(10**rng.uniform(6, 8))]))
             for i in range(n) for j in range(n) if i != j and rng.random() < 0.7}
    text = [f'name = "drawn"\nsource = "random"\n[default_path]\nlatency = "{default}s"']
    text += [f'[[site]]\nname = "s{i}"\nuplink = "{site["uplink"] * 8}bps"\ndownlink = "{site["downlink"] * 8}bps"'
             for i, site in enumerate(sites)]
    text += [f'[[path]]\nfrom = "s{i}"\nto = "s{j}"\nlatency = "{seconds}s"' + (f'\nbandwidth = "{rate * 8}bps"' if rate else "")
             for (i, j), (seconds, rate) in paths.items()]
    (program.folder / "p.toml").write_text("\n".join(text) + "\n")
    return sites, paths, default


def events(program, keys, links):
    """Compares the simulated times of unequal sites. The bytes under way are whole bytes in fomoe, and real numbers here."""
    s = reference.Scenario(keys | {"platform": {"sites": len(links[0])}})
    exact = not any(latency for latency, _ in [(links[2], None), *links[1].values()])
    if s.rounds > 60 or keys["strategy"].get("ring_order") != "given":
        raise ValueError("too many rounds or another ring, which happens while a scenario is made smaller")
    expected, actual = reference.simulated_wall_clock(s, *links), program.answer("simulate", keys)["wall_clock_s"]
    # A byte more or less in each of 2 (M - 1) flows that follow each other or share a link, at the slowest rate.
    slowest = min([rate for site in links[0] for rate in site.values()] + [rate for _, rate in links[1].values() if rate])
    rounding = 0 if exact else s.rounds * 2 * (s.sites - 1) / slowest / expected
    return [(f"simulated {s.collective}{'' if exact else ' with latencies'}", expected, actual, 1e-9 + rounding)]


def placement(program, keys):
    """Checks the written plan: O_e sites for each expert, N_le experts of each layer at each site, and whence experts migrate."""
    s, rows, before, moved = reference.Scenario(keys), [], None, {}
    program.text("simulate", keys, "--rounds", "all", "--sensitivity", "none", "--write-plan", "plan.json")
    plan = json.loads((program.folder / "plan.json").read_text())
    for drawn in sorted(plan["rounds"], key=lambda one: one["indices"][0]):
        nodes = collections.defaultdict(list)
        exchanges = [one for op in drawn["ops"] for one in op.get("transfer", {}).get("exchanges", [])]
        for exchange, payload in [(one, payload) for one in exchanges for payload in one["payloads"]]:
            for group in payload["groups"]:
                nodes[payload["traffic"], group].append(exchange["nodes"])
        owners = {group: set(sites[0]) for (traffic, group), sites in nodes.items() if traffic == "expert_sync"}
        held = collections.Counter((plan["groups"][group]["layers"][0], site) for group, sites in owners.items() for site in sites)
        rows += [("owners of an expert", s.overlap, len(sites), 0) for sites in owners.values()]
        copies = s.experts * s.overlap  # of a layer, dealt out in turn, where the layer before ended
        rows += [("experts of a site in a layer", sum(copy % s.sites == site for copy in range(layer * copies, (layer + 1) * copies)), count, 0)
                 for (layer, site), count in held.items()]
        rows += [("experts with owners", s.layers * s.experts, len(owners), 0)]
        if before and moved:
            rows += [("receivers of an expert", held_now - before[group], {j for _, j in moved.get(group, [])}, None)
                     for group, held_now in owners.items()]
            rows += [("senders are owners", True, all(i in before[group] for i, _ in pairs), None) for group, pairs in moved.items()]
        before, moved = owners, {group: pairs for (traffic, group), pairs in nodes.items() if traffic == "migration"}
    return rows


def error(expected, actual, tolerance):
    """Returns the relative difference, or 0 or 1 where values must be the same."""
    same = tolerance is None or expected == actual
    return float(expected != actual) if same else abs(expected - actual) / max(abs(expected), abs(actual), 1e-12)


def mismatches(check, keys, name):
    return [row for row in check(keys) if row[0] == name and error(*row[1:]) > (row[3] or 0)]


def shrink(keys, differs):
    """Removes keys and makes numbers smaller as long as the scenario still differs."""
    for part, key in [(table, name) for _ in range(3) for table in keys for name in keys[table]]:
        value = keys.get(part, {}).get(key)
        for smaller in [] if value is None else [None] + ([1, value // 2, value - 1] if type(value) is int and value > 1 else []):
            table = {name: old for name, old in (keys[part] | {key: smaller}).items() if old is not None}
            try:
                if differs(keys | {part: table}):
                    keys = keys | {part: table}
                    break
            except (RuntimeError, KeyError, ValueError, ZeroDivisionError, TypeError, AttributeError):
                pass  # The scenario lacks a key that it needs, or fomoe refuses it.
    return keys


def cases(rng, program, number):
    """Draws the scenarios of one number, with the function that checks each."""
    accounting, names = rng.choice(["paper", "mechanism"]), [*methods.ROUNDS, "fomoe", "fomoe"]
    yield draw(rng, (names[number % len(names)],)), lambda keys: formulas(program, keys, accounting)
    if number % 10 == 0:
        keys, links = draw(rng, ("ddp", "local_sgd", "diloco", "local_adamw")), draw_links(rng, program)
        batch, steps = {"global_batch_sequences": 4 * len(links[0])}, 1 if keys["strategy"]["method"] == "ddp" else rng.randint(1, 20)
        # Up to three rounds of a ring, one of a direct exchange: the reference does not let flows of two rounds share links.
        collective, count = rng.choice([("ring", 3), ("direct", 1)])
        batch["tokens"] = rng.randint(1, count * 4 * steps * len(links[0]) * keys["model"]["sequence_length"])
        keys |= {"network_model": {"host": "ideal"}, "platform": {"file": "p.toml"}, "workload": batch}
        keys["strategy"] |= {"collective": collective, "ring_order": "given", "local_steps": steps}
        yield keys, lambda keys: events(program, keys, links)
    if number % 20 == 0:
        keys, sites = draw(rng, ("fomoe",)), rng.randint(3, 6)
        keys |= {"platform": {"sites": sites, "bandwidth": "1Gbps", "latency": "5ms"}, "compute": {"step_time": "9ms"},
                 "workload": {"global_batch_sequences": 30, "tokens": 480 * keys["model"]["sequence_length"]}}
        keys["model"] |= {"experts": rng.randint(sites, 3 * sites), "active_experts": 1, "layers": 3}
        keys["strategy"] |= {"local_steps": 2, "expert_overlap": rng.randint(2, sites)}
        if "fragments" in keys["strategy"]:
            keys["strategy"] |= {"fragments": rng.randint(1, 2), "overlap_steps": min(1, keys["strategy"]["overlap_steps"])}
        yield keys, lambda keys: placement(program, keys)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for option, default in (("--scenarios", 200), ("--properties", 23), ("--seed", 1), ("--fomoe", "build/release/bin/fomoe")):
        parser.add_argument(option, type=type(default), default=default)
    options = parser.parse_args()
    rng, counts, failed = random.Random(options.seed), collections.defaultdict(lambda: [0, 0.0]), set()
    with tempfile.TemporaryDirectory() as folder:
        program = Program(options.fomoe, folder)
        compared = (case for number in range(options.scenarios) for case in cases(rng, program, number))
        for keys, check in itertools.chain(compared, properties.cases(rng, program, options.properties)):
            for name, *row in check(keys):
                pair, difference = (name, keys["strategy"]["method"]), error(*row)
                counts[pair] = [counts[pair][0] + 1, max(counts[pair][1], difference)]
                if difference > (row[2] or 0) and pair not in failed:
                    failed.add(pair)
                    small = shrink(keys, lambda tried, check=check, name=name: mismatches(check, tried, name))
                    found = mismatches(check, small, name) or [(name, *row)]  # empty if fomoe does not answer the same twice
                    print(f"MISMATCH {pair}: expected, fomoe = {str(found[0][1:3])[:400]} for {json.dumps(small)}",
                          (program.folder / "p.toml").read_text() if "file" in small["platform"] else "", flush=True)
    timed = {method for name, method in counts if name in ("wall_clock_s", "simulated instead of closed form")}
    if options.scenarios >= len(methods.ROUNDS) and timed < set(methods.ROUNDS):
        failed.add("no times")
        print("MISMATCH: no times were compared of", *sorted(set(methods.ROUNDS) - timed))
    for name in dict.fromkeys(name for name, _ in counts):
        print(f"{name}:", *[f"{method} {count} ({worst:.1e})" for (other, method), (count, worst) in counts.items() if other == name])
    print(f"{sum(count for count, _ in counts.values())} comparisons in {options.scenarios + options.properties} scenarios, {len(failed)} kinds of mismatch")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
