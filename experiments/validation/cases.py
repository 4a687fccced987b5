"""The chosen cases of the validation campaign, and how further cases are drawn at random."""
import csv
import json
import math
import random
import subprocess
import tempfile
from pathlib import Path

# Overrides by name. Rates are those of links, so they include IP and TCP headers.
PLATFORMS = {
    "near": ["platform.sites=2", "platform.bandwidth=100Mbps", "platform.latency=10ms"],
    "fast": ["platform.sites=2", "platform.bandwidth=1Gbps", "platform.latency=5ms"],
    "half": ["platform.sites=2", "platform.bandwidth=500Mbps", "platform.latency=25ms"],
    "three": ["platform.sites=3", "platform.bandwidth=200Mbps", "platform.latency=25ms"],
    "four": ["platform.sites=4", "platform.bandwidth=200Mbps", "platform.latency=50ms"],
    "far": ["platform.sites=4", "platform.bandwidth=50Mbps", "platform.latency=100ms"],
    "uneven": ["platform.sites=3", "platform.uplink=50Mbps", "platform.downlink=200Mbps", "platform.latency=20ms"],
    "slow": ["platform.file=slow-site.toml", "platform.sites=3"],
}
SITES = {"near": 2, "fast": 2, "half": 2, "three": 3, "four": 4, "far": 4, "uneven": 3, "slow": 3}
# The parameters of a site take 1.3, 12 and 101 MB in fp32.
MODELS = {
    "small": ["model.d_model=128", "model.d_expert=64", "model.vocabulary=512", "model.experts=8"],
    "medium": ["model.d_model=256", "model.d_expert=256", "model.vocabulary=1024", "model.experts=8"],
    "large": ["model.d_model=512", "model.d_expert=512", "model.vocabulary=4096", "model.experts=16"],
}
METHODS = {
    "ddp": ["strategy.method=ddp"],
    "diloco": ["strategy.method=diloco"],
    "local_adamw": ["strategy.method=local_adamw"],
    "streaming": ["strategy.method=streaming_diloco", "strategy.fragments=2", "strategy.overlap_steps=2"],
    "fomoe-fixed": ["strategy.method=fomoe", "strategy.placement=fixed"],
    "fomoe-random": ["strategy.method=fomoe", "strategy.placement=random"],
    "fomoe-skip": ["strategy.method=fomoe", "strategy.placement=random", "strategy.skip_token=true"],
}
# Methods of the drawn cases with unequal latencies: rings, direct exchanges, a server, groups of experts, selected values.
UNEQUAL_METHODS = METHODS | {
    "fedavg": ["strategy.method=fedavg"],
    "local_sgd": ["strategy.method=local_sgd"],
    "des_loc": ["strategy.method=des_loc"],
    "dept": ["strategy.method=dept"],
    "sparse_loco": ["strategy.method=sparse_loco"],
    "hierarchical": ["strategy.method=hierarchical_diloco", "strategy.regions=1", "strategy.global_period=2"],
    "fomoe-adamw": ["strategy.method=fomoe", "strategy.placement=random", "strategy.outer_optimizer=local_adamw"]}
SEQUENCES_A_STEP = 16
TOKENS_A_STEP = 16 * SEQUENCES_A_STEP


def case(platform, model, method, k, rounds, collective="direct", step="100ms", overlap=None, paced=True,
         congestion="bbr", queue="8x", uplink="host", quota=None):
    name = f"{method}-{platform}-{model}-k{k}" + ("-ring" if collective == "ring" else "")
    if overlap:
        name += f"-o{overlap}"
    if not paced:
        name += "-computed"
    if quota:
        name += f"-quota{quota}"
    if congestion != "bbr":
        name += "-" + congestion
    if queue != "8x" and uplink == "host":
        raise ValueError("short queues are only named for uplink=\"router\"")
    if uplink != "host":
        name += "-router" if queue == "8x" else "-shallow"
    steps = rounds if method == "ddp" else rounds * k
    settings = PLATFORMS[platform] + MODELS[model] + METHODS[method] + [
        f"strategy.local_steps={k}", f"strategy.collective={collective}", f"compute.step_time={step}",
        f"workload.tokens={steps * TOKENS_A_STEP}"] + ([f"strategy.expert_overlap={overlap}"] if overlap else [])
    if overlap and platform in ("three", "uneven", "slow"):
        settings.append("model.experts=6")  # three sites then hold equally many
    return {"name": name, "platform": platform, "settings": settings, "paced": paced,
            "congestion": congestion, "queue": queue, "uplink": uplink, "quota": quota,
            "site_sequences": SEQUENCES_A_STEP // SITES[platform]}


def cases():
    yield case("near", "small", "diloco", 4, 8)
    yield case("near", "medium", "diloco", 8, 4)
    yield case("near", "medium", "ddp", 1, 6)
    yield case("near", "small", "ddp", 1, 20)
    yield case("near", "small", "ddp", 1, 20, "ring")
    yield case("near", "medium", "local_adamw", 8, 3)
    yield case("near", "medium", "streaming", 8, 4)
    yield case("near", "medium", "fomoe-fixed", 8, 4, overlap=1)
    yield case("near", "small", "diloco", 64, 2, step="50ms")
    yield case("fast", "large", "diloco", 8, 4)
    yield case("fast", "large", "ddp", 1, 5)
    yield case("fast", "medium", "diloco", 16, 4, step="50ms")
    yield case("fast", "medium", "local_adamw", 4, 6)
    yield case("fast", "large", "streaming", 8, 4)
    yield case("fast", "large", "fomoe-fixed", 8, 4, overlap=1)
    yield case("half", "medium", "diloco", 8, 6)
    yield case("half", "large", "diloco", 16, 3)
    yield case("half", "medium", "ddp", 1, 15)
    yield case("half", "large", "local_adamw", 8, 2)
    yield case("three", "medium", "diloco", 8, 4)
    yield case("three", "medium", "diloco", 8, 4, "ring")
    yield case("three", "small", "ddp", 1, 15)
    yield case("three", "small", "ddp", 1, 15, "ring")
    yield case("three", "medium", "streaming", 8, 4)
    yield case("three", "medium", "local_adamw", 16, 3)
    yield case("three", "medium", "fomoe-random", 8, 4, overlap=1)
    yield case("three", "medium", "fomoe-random", 8, 4, overlap=2)
    yield case("four", "small", "diloco", 8, 6)
    yield case("four", "medium", "diloco", 8, 3)
    yield case("four", "medium", "diloco", 8, 3, "ring")
    yield case("four", "small", "ddp", 1, 10)
    yield case("four", "small", "ddp", 1, 8, "ring")
    yield case("four", "medium", "fomoe-fixed", 8, 3, overlap=1)
    yield case("four", "medium", "fomoe-fixed", 8, 3, overlap=2)
    yield case("four", "medium", "fomoe-random", 8, 3, overlap=2)
    yield case("four", "medium", "fomoe-random", 8, 3, overlap=4)
    yield case("four", "medium", "fomoe-skip", 8, 3, overlap=2)
    yield case("four", "medium", "fomoe-random", 8, 3, "ring", overlap=2)
    yield case("far", "small", "diloco", 16, 4)
    yield case("far", "small", "diloco", 16, 4, "ring")
    yield case("far", "medium", "diloco", 16, 2)
    yield case("far", "small", "ddp", 1, 6)
    yield case("far", "small", "local_adamw", 16, 3)
    yield case("far", "medium", "fomoe-random", 16, 2, overlap=1)
    yield case("far", "small", "fomoe-skip", 16, 4, overlap=2)
    yield case("uneven", "small", "diloco", 8, 5)
    yield case("uneven", "medium", "diloco", 8, 3)
    yield case("uneven", "medium", "diloco", 8, 3, "ring")
    yield case("uneven", "small", "ddp", 1, 10)
    yield case("uneven", "medium", "fomoe-random", 8, 3, overlap=2)
    yield case("slow", "small", "diloco", 8, 5)
    yield case("slow", "medium", "diloco", 8, 3)
    yield case("slow", "medium", "diloco", 8, 3, "ring")
    yield case("slow", "small", "ddp", 1, 15)
    yield case("slow", "medium", "local_adamw", 8, 2)
    yield case("slow", "medium", "fomoe-fixed", 8, 3, overlap=2)
    # Some of these cases again with Reno, which slows down at every loss.
    yield case("near", "small", "diloco", 4, 8, congestion="reno")
    yield case("near", "medium", "diloco", 8, 4, congestion="reno")
    yield case("near", "medium", "ddp", 1, 6, congestion="reno")
    yield case("half", "medium", "diloco", 8, 6, congestion="reno")
    yield case("half", "large", "diloco", 16, 3, congestion="reno")
    yield case("three", "medium", "diloco", 8, 4, congestion="reno")
    yield case("three", "medium", "diloco", 8, 4, "ring", congestion="reno")
    yield case("four", "small", "diloco", 8, 6, congestion="reno")
    yield case("four", "medium", "fomoe-random", 8, 3, overlap=2, congestion="reno")
    yield case("far", "small", "ddp", 1, 6, congestion="reno")
    yield case("far", "small", "diloco", 16, 4, congestion="reno")
    yield case("slow", "small", "diloco", 8, 5, congestion="reno")
    # All connections of a site share one queue behind it.
    yield case("near", "medium", "diloco", 8, 4, uplink="router")
    yield case("half", "medium", "ddp", 1, 15, uplink="router")
    yield case("three", "medium", "diloco", 8, 4, "ring", uplink="router")
    yield case("four", "medium", "fomoe-random", 8, 3, overlap=2, uplink="router")
    yield case("far", "medium", "diloco", 16, 2, uplink="router")
    yield case("uneven", "medium", "diloco", 8, 3, uplink="router")
    yield case("slow", "small", "diloco", 8, 5, uplink="router")
    # The same, but the queue holds only rate × round trip; packets that do not fit are lost.
    yield case("near", "medium", "ddp", 1, 6, queue="1x", uplink="router")
    yield case("half", "medium", "diloco", 8, 6, queue="1x", uplink="router")
    yield case("three", "medium", "diloco", 8, 4, queue="1x", uplink="router")
    yield case("three", "medium", "fomoe-random", 8, 4, overlap=1, queue="1x", uplink="router")
    yield case("four", "medium", "diloco", 8, 3, queue="1x", uplink="router")
    yield case("four", "medium", "fomoe-random", 8, 3, overlap=4, queue="1x", uplink="router")
    yield case("slow", "small", "diloco", 8, 5, queue="1x", uplink="router")
    # Steps are computed instead of paced, and predicted from a profile measured just before the run.
    yield case("near", "small", "diloco", 64, 4, paced=False)
    yield case("near", "small", "ddp", 1, 40, paced=False)
    yield case("near", "medium", "diloco", 16, 4, paced=False)
    yield case("four", "small", "diloco", 64, 4, paced=False, quota=0.4)
    yield case("four", "small", "ddp", 1, 20, paced=False, quota=0.4)


SLICE = ["diloco-near-small-k4", "ddp-near-small-k1", "diloco-three-medium-k8-ring", "fomoe-fixed-near-medium-k8-o1"]


def platform_text(sites, uplink, downlink, latencies_ms, capped, shared):
    """A platform file whose pairs of sites have these one-way latencies, the same in both directions: first those from
    site 0 to sites 1, 2, …, then those from site 1 to sites 2, 3, … `capped` has the rates of single paths by their
    ends ("0-2"). With `shared`, all paths from the first half of the sites to the second share a link of that rate,
    and so do the paths back."""
    text = 'name = "unequal"\nsource = "drawn at random"\n'
    for site in range(sites):
        text += f'[[site]]\nname = "site-{site}"\nuplink = "{uplink}"\ndownlink = "{downlink}"\n'
        if shared:
            text += f'region = "{"west" if site < sites // 2 else "east"}"\n'
    pairs = [(a, b) for a in range(sites) for b in range(a + 1, sites)]
    for (a, b), latency in zip(pairs, latencies_ms, strict=True):
        for ends in ((a, b), (b, a)):
            text += f'[[path]]\nfrom = "site-{ends[0]}"\nto = "site-{ends[1]}"\nlatency = "{latency}ms"\n'
            if f"{ends[0]}-{ends[1]}" in capped:
                text += f'bandwidth = "{capped[f"{ends[0]}-{ends[1]}"]}"\n'
    if shared:
        text += f'[[backbone]]\nfrom = "west"\nto = "east"\nbandwidth = "{shared}"\n'
    return text


def with_platform(one, folder):
    """The settings of a case. If its latencies differ, a platform file in `folder` replaces sites, rates and latency."""
    if not one.get("latencies_ms"):
        return one["settings"]
    given = dict(s.split("=", 1) for s in one["settings"] if s.startswith("platform."))
    path = Path(folder) / "platform.toml"
    path.write_text(platform_text(int(given["platform.sites"]), given["platform.uplink"], given["platform.downlink"],
                                  one["latencies_ms"], one["capped"], one["shared"]))
    return [f"platform.file={path}", f"platform.sites={given['platform.sites']}"] + [
        s for s in one["settings"] if not s.startswith("platform.")]


def carried(settings):
    """Whether two cores carry the case's packets without being the limit. The sum of all uplinks may be 500 Mb/s, where
    each site sends on many connections: their bursts are of few segments, and the emulator works for each burst. With one
    or two connections it may be 1,500 Mb/s. Three runs of blind-5 with late packets (09, 26, 54) are
    above."""
    value = dict(s.split("=", 1) for s in settings)
    sites = int(value["platform.sites"])
    peers = sites - 1 if value["strategy.collective"] == "direct" else 1
    all_Mbps = sites * int(value["platform.uplink"].removesuffix("Mbps"))
    return all_Mbps <= (1500 if peers * int(value["network_model.streams"]) <= 2 else 500)


def draw(count, seed, fomoe, scenario, unequal=False, clock_s=10, real=False, all_carried=False):
    """Yields random cases as rows of a CSV: name and settings. Each has as many rounds as are predicted to take `clock_s`
    seconds, at least 4 and at most 60; cases that are predicted to take more than three times that are drawn again. With
    `unequal`, each pair of sites has its own latency and 1 to 8 connections, and cases differ in TCP's congestion
    control; a third has paths with rates of their own, a third a link that many paths share, and a third one queue
    behind each site, of 1 or 8 times bandwidth x round trip. One half has the system's socket buffers. With `real`, a
    third of the cases with 2 or 4 sites compute their steps; each of 4 sites then has 0.4 cores. With `all_carried`, cases
    that carried() rejects are drawn again."""
    chance = random.Random(seed)

    def between(low, high):  # uniform in the logarithm
        return math.exp(chance.uniform(math.log(low), math.log(high)))

    number = 0
    while number < count:
        sites = chance.choice([2, 3, 3, 4, 4, 5, 6] if unequal else [2, 2, 3, 3, 4])
        down = round(between(10 if unequal else 40, min(900, 2400 / sites)))
        method = chance.choice(sorted(UNEQUAL_METHODS if unequal else METHODS))
        k = 1 if method == "ddp" else chance.choice([3, 6, 12, 20, 32])
        settings = [f"platform.sites={sites}", f"platform.downlink={down}Mbps",
                    f"platform.uplink={round(down / chance.choice([1, 1, 1, 2, 3]))}Mbps",
                    f"platform.latency={round(between(4, 80))}ms",
                    f"model.d_model={chance.choice([96, 160, 256, 384])}",
                    f"model.d_expert={chance.choice([64, 128, 192, 320])}",
                    f"model.vocabulary={chance.choice([512, 2048])}", f"model.experts={sites * chance.choice([2, 4])}",
                    *(METHODS | UNEQUAL_METHODS)[method], f"strategy.local_steps={k}",
                    f"strategy.collective={chance.choice(['direct', 'direct', 'ring'])}",
                    f"compute.step_time={round(between(40, 200))}ms"]
        if method.startswith("fomoe"):
            settings.append(f"strategy.expert_overlap={chance.choice([1, 2])}")
        if method == "streaming":
            settings = [s for s in settings if s != "strategy.overlap_steps=2"]
            settings.append(f"strategy.overlap_steps={min(2, k // 2)}")
        row = {}
        if unequal:
            pairs = [(a, b) for a in range(sites) for b in range(a + 1, sites)]
            row = {"latencies_ms": " ".join(str(round(between(1, 300))) for _ in pairs),
                   "congestion": chance.choice(["bbr", "cubic", "reno"]), "capped": "", "shared": "", "uplink": "host",
                   "queue": "8x", "buffers": chance.choice(["system", "large"])}
            settings.append(f"network_model.streams={chance.choice([1, 1, 2, 4, 8])}")
            special = chance.choice(["", "capped", "shared"]) if sites > 2 else ""
            if special == "capped":
                row["capped"] = " ".join(f"{a}-{b}:{round(down * chance.uniform(0.1, 0.6))}Mbps"
                                         for a, b in chance.sample(pairs, 2))
            if special == "shared":
                row["shared"] = f"{round(down * chance.uniform(0.4, 1.2))}Mbps"
            if chance.random() < 0.33:
                row |= {"uplink": "router", "queue": chance.choice(["1x", "8x"])}
        if all_carried and not carried(settings):
            continue
        if real:
            computed = sites in (2, 4) and chance.random() < 0.33
            row |= {"steps": "computed" if computed else "paced", "quota": "0.4" if computed and sites == 4 else ""}
        row = {"name": f"{'several' if unequal else 'drawn'}-{seed}-{number:02}-{method}",
               "settings": " ".join(settings)} | row
        with tempfile.TemporaryDirectory() as folder:
            case = case_of(row)
            few = overrides(with_platform(case, folder) + network_terms(case["congestion"], case["uplink"], case["queue"],
                                                                        case["buffers"])
                            + [f"workload.tokens={8 * k * TOKENS_A_STEP}"])
            asked = subprocess.run([fomoe, "simulate", scenario, *few, "--output", "-"], stdout=subprocess.PIPE,
                                   check=True)
        round_s = json.loads(asked.stdout)["round"]["duration_s"]
        rounds = min(60, max(4, round(clock_s / round_s)))
        if rounds * round_s <= 3 * clock_s:
            row["settings"] += f" workload.tokens={rounds * k * TOKENS_A_STEP}"
            yield row
            number += 1


def case_of(row):
    """The case of a row of a CSV of drawn cases."""
    settings = row["settings"].split(" ")
    sites = next(int(value) for key, _, value in (s.partition("=") for s in settings) if key == "platform.sites")
    return {"name": row["name"], "platform": row["name"], "settings": settings,
            "latencies_ms": [int(value) for value in row.get("latencies_ms", "").split()],
            "capped": dict(one.split(":") for one in row.get("capped", "").split()), "shared": row.get("shared", ""),
            "paced": row.get("steps", "paced") == "paced", "congestion": row.get("congestion", "bbr"),
            "queue": row.get("queue", "8x"), "uplink": row.get("uplink", "host"),
            "quota": float(row["quota"]) if row.get("quota") else None, "site_sequences": SEQUENCES_A_STEP // sites,
            "buffers": row.get("buffers", "large")}


def network_terms(congestion_control, uplink_queue, queue, socket_buffers):
    """Keys of [network_model] for the conditions of a run. 1 GB is the largest buffer that fomoe-wan sets."""
    keys = {"host": "linux", "congestion_control": congestion_control, "uplink_queue": uplink_queue,
            "queue_bdp": queue.removesuffix("x")}
    if socket_buffers == "large":
        keys |= {"send_buffer": "1GB", "receive_buffer": "2GB"}
    return [f"network_model.{key}={value}" for key, value in keys.items()]


def read_drawn(path):
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            yield case_of(row)


def overrides(settings):
    return [word for setting in settings for word in ("--set", setting)]
