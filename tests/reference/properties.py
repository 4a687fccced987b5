"""Properties that the answers of fomoe must have with every method, whatever the numbers of the scenario are.

Each property is a row (name, expected value, actual value, tolerance), as in differential_test.py. They need no second
implementation, so that they also hold where reference.py knows no formula.
"""

import itertools
import random
import re
import subprocess


def methods_of(program):
    """Returns each method's name with the keys of [strategy] that change it, as `fomoe list methods` says."""
    text = subprocess.run([program.path, "list", "methods"], capture_output=True, text=True, check=True).stdout
    return {name: keys.split(", ") for name, keys in re.findall(r"^(\w+)\n.*\n  changed by: (.*)$", text, re.MULTILINE)}


def draw(rng, method, read):
    """Draws a scenario of any method, with a few steps, so that all of its rounds can be simulated."""
    sites, K, number = rng.choice([2, 2, 3, 4, 6]), rng.randint(1, 5), rng.randint
    sequence, batch = number(8, 300), sites * number(1, 4)
    choices = {"local_steps": K, "collective": rng.choice(["ring", "direct", "recursive"]), "granularity": "tensor",
               "payload_dtype": rng.choice(["fp32", "bf16", "fp16", "int8"]), "parameter_dtype": rng.choice(["fp32", "bf16"]),
               "fragments": number(1, 3), "outer_optimizer": rng.choice(["nesterov", "adam", "yogi"]), "staleness": number(0, 2),
               "dynamic_local_steps": True, "layerwise": True, "global_period": number(1, 4), "moment1_period": number(1, 4),
               "moment2_period": number(1, 4), "fragment_pattern": rng.choice(["strided", "sequential", "balanced"]),
               "overlap_steps": number(0, K - 1), "gossip_peers": number(1, sites - 1), "expert_overlap": number(1, sites),
               "placement": rng.choice(["fixed", "random"]), "reshuffle_rounds": number(1, 3), "skip_token": True,
               "outer_state_on_migration": "transfer", "max_sites_per_token": number(1, sites), "capacity_factor": 1.25,
               "router": rng.choice(["uniform", "hash"]), "overlap_dispatch": True, "dispatch_dtype": "fp8",
               "sharding": rng.choice(["full_shard", "full_shard_no_sync", "shard_grad_op", "hybrid_shard"]),
               "micro_batches": rng.choice([1, 2, 4]), "schedule": rng.choice(["gpipe", "1f1b"])}
    strategy = {key: value for key, value in choices.items() if key in read and (key == "local_steps" or rng.random() < 0.4)}
    # The formula of layers that are sent one by one knows no short last round: its steps then hide too much.
    whole = K if strategy.get("layerwise") else 1
    experts = number(sites, 2 * sites) if method == "fomoe" else sites * number(1, 2)
    return {"model": {"d_model": 2 * 16 * number(1, 8), "layers": sites * number(1, 2), "heads": 2, "experts": experts,
                      "active_experts": 1, "d_expert": number(8, 200), "vocabulary": number(50, 20000), "sequence_length": sequence},
            "workload": {"tokens": sequence * batch * whole * number(1, 12 // whole), "global_batch_sequences": batch},
            "strategy": {"method": method} | strategy,
            "compute": {"step_time": f"{rng.uniform(1, 300):.6g}ms"},
            "platform": {"sites": sites, "bandwidth": f"{10**rng.uniform(7, 10):.9g}bps", "latency": f"{rng.choice([0, rng.uniform(0.1, 80)]):.6g}ms"},
            "network_model": {"host": "ideal"}}


def number_of(text):
    return float(re.match(r"[0-9.eE+-]+", text)[0])


def scaled(keys, rate=1.0, latency=1.0, step=1.0):
    """The scenario with its rates, latencies or step times multiplied."""
    platform = keys["platform"] | {"bandwidth": f"{number_of(keys['platform']['bandwidth']) * rate!r}bps",
                                   "latency": f"{number_of(keys['platform']['latency']) * latency!r}ms"}
    return keys | {"platform": platform, "compute": {"step_time": f"{number_of(keys['compute']['step_time']) * step!r}ms"}}


def wall(program, keys, engine):
    return program.answer("simulate", keys, "--engine", engine)["wall_clock_s"]


def approximates(answer):
    """Whether the answer of the closed form says that it is an approximation."""
    return any(note.startswith("the closed form") or "the closed form lets" in note for note in answer["notes"])


def explained_wall_clock(program, keys):
    """The last number of the line that fomoe explain prints for the wall clock, which it rounds to ten digits."""
    text = program.text("explain", keys)
    found = re.search(r"^  wall clock = .*\n(?:      = .*\n)*      = ([0-9.e+-]+) s", text, re.MULTILINE)
    if not found:
        raise RuntimeError(f"fomoe explain states no wall clock: {text[-500:]}")
    return float(found[1])


def physical(program, keys, c):
    """What physics asks for: slower parts never make a run faster, and no unit of time is special."""
    for engine in ("closed-form", "simulated"):
        answer = program.answer("simulate", keys, "--engine", engine)
        base = answer["wall_clock_s"]
        changes = {"bandwidth": {"rate": 0.7}, "latency": {"latency": 1.5}, "step time": {"step": 1.5}}
        if approximates(answer):  # it may let longer steps hide more than there is, for example in a short last round
            changes = {}
        for name, slower in changes.items():
            yield f"monotone in {name}, {engine}", True, wall(program, scaled(keys, **slower), engine) >= base * (1 - 1e-9), None
        yield f"scale invariance, {engine}", base, c * wall(program, scaled(keys, c, 1 / c, 1 / c), engine), 1e-9
        # Twice the bytes over links that are twice as fast. Only fp32 has exactly twice the bytes of bf16, and the positions of
        # sparse values do not change with the format.
        dense = {key: value for key, value in keys["strategy"].items() if key != "dispatch_dtype"}
        if dense["method"] == "ddp":  # whose buckets have 25 MiB by default, whatever the format is
            dense = {"fragments": 2} | dense
        twice = [keys | {"strategy": dense | {"payload_dtype": name, "parameter_dtype": name}} for name in ("bf16", "fp32")]
        if dense["method"] in ("sparse_loco", "demo"):
            continue
        try:
            yield f"twice the bytes at twice the rate, {engine}", wall(program, twice[0], engine), wall(program, scaled(twice[1], rate=2.0), engine), 1e-9
        except RuntimeError:  # the method sends something that has a format of its own, and refuses the keys
            pass


def one_slow_site(program, keys):
    """A site that is slower than the others never makes the run faster."""
    slow = {"site": [{"name": f"site-{keys['platform']['sites']}", "step_time": scaled(keys, step=1.7)["compute"]["step_time"]}]}
    for engine in ("closed-form", "simulated"):
        equal, unequal = (wall(program, own, engine) for own in (keys, keys | slow))
        yield f"a slower site makes nothing faster, {engine}", True, unequal >= equal * (1 - 1e-9), None


def permuted(program, keys, rng):
    """Equal sites in another order."""
    n, latency, rate = keys["platform"]["sites"], keys["platform"]["latency"], keys["platform"]["bandwidth"]
    text = "".join(f'[[site]]\nname = "s{i}"\nuplink = "{rate}"\ndownlink = "{rate}"\n' for i in range(n))
    (program.folder / "p.toml").write_text(f'name = "equal"\nsource = "test"\n[default_path]\nlatency = "{latency}"\n{text}')
    names = [f"s{i}" for i in range(n)]
    orders = [names, rng.sample(names, n)]
    for engine in ("closed-form", "simulated"):
        walls = [wall(program, keys | {"platform": {"file": "p.toml", "use_sites": ", ".join(order)}}, engine) for order in orders]
        yield f"permutation of equal sites, {engine}", *walls, 1e-9


def forms(program, keys):
    """The same question in other words."""
    yield "explain = closed form", wall(program, keys, "closed-form"), explained_wall_clock(program, keys), 1e-9
    yield "TOML in = JSON in", *[program.text("simulate", keys, "--output", "-", name=f"s.{kind}") for kind in ("json", "toml")], None
    yield "same seed, same bytes", *[program.text("simulate", keys, "--seed", "5", "--output", "-") for _ in range(2)], None
    vary = ["--vary", "platform.bandwidth=50Mbps,3Gbps", "--vary", "platform.latency=1ms,9ms", "--output", "-", "--jobs"]
    sweeps = [program.text("sweep", keys, *vary, jobs) for jobs in ("1", "2", "3")]
    for sweep in sweeps[1:]:
        yield "same sweep for any --jobs", sweeps[0], sweep, None


def solved(program, keys, rng):
    """The answer of solve reaches its target; the value beside it, which solve says does not, does not."""
    for key, change in (("platform.bandwidth", lambda value: {"platform": keys["platform"] | {"bandwidth": f"{value * 8!r}bps"}}),
                        ("compute.step_time", lambda value: {"compute": {"step_time": f"{value!r}s"}}),
                        ("strategy.local_steps", lambda value: {"strategy": keys["strategy"] | {"local_steps": int(value)}})):
        if key.split(".")[1] not in keys[key.split(".")[0]]:
            continue
        base = wall(program, keys, "closed-form")
        target = base * rng.uniform(0.6, 1.1)
        answer = program.answer("solve", keys, "--engine", "closed-form", "--for", key, "--target", f"wall_clock={target!r}s")["answers"][0]
        if answer.get("value") is None or answer.get("beside") is None or not answer["monotone"]:
            continue
        reached, beside = (wall(program, keys | change(answer[name]), "closed-form") for name in ("value", "beside"))
        yield f"solve for {key} reaches its target, the value beside it does not", True, reached <= target * (1 + 1e-9) < beside * (1 + 2e-9), None


def planned(program, keys):
    """plan's choice is not beaten by a row of its own search by more than the 1 % within which values are ties."""
    plan = program.answer("plan", keys | {"quality": {"equal_loss_factor": 1.1}})
    # Rows without a factor have an unknown quality, and state the time of the run instead of the time to an equal loss.
    rows = [row for row in plan["ranking"] + plan["methods"] if row["equal_loss_factor"] and not row["problem"]]
    yield "plan's choice is not beaten", True, all(row["value"] * (1.01 + 1e-9) >= plan["choice"]["value"] for row in rows), None


def checks(seed, program, number):
    """Yields the functions that check one scenario, of which one is slow and seldom asked for."""
    def fresh():  # a scenario that is made smaller is checked with the same draws
        return random.Random(seed)
    yield lambda keys: physical(program, keys, fresh().uniform(0.2, 5))
    yield lambda keys: one_slow_site(program, keys)
    yield lambda keys: permuted(program, keys, fresh())
    yield lambda keys: forms(program, keys)
    yield lambda keys: solved(program, keys, fresh())
    if number % 100 == 0:
        yield lambda keys: planned(program, keys)


def cases(rng, program, count):
    """Draws scenarios of all methods in turn, with the functions that check each. A refused scenario is drawn again."""
    methods = methods_of(program)
    for number, (method, read) in zip(range(count), itertools.cycle(methods.items())):
        for _ in range(40):
            keys = draw(rng, method, read)
            try:
                wall(program, keys, "closed-form")
                break
            except RuntimeError as error:
                refused = str(error)
        else:
            raise RuntimeError(f"no valid scenario of {method}: {refused}")
        for check in checks(rng.random(), program, number):
            yield keys, check


