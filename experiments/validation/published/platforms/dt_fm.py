#!/usr/bin/env python3
"""Writes the platforms of the DT-FM runs (Yuan et al. 2022, arXiv 2206.01288) from the authors' own matrices.

The delays, the rates and the order of the machines are those of scheduler/generate_sim_com_matrices.py in
github.com/DS3Lab/Decentralized_FM_alpha at commit cb03043 (the inner delay of 10 ms was there on 2022-05-06, before the runs).
tc netem shaped what leaves each machine, so the delays are one way. The network card of a p3.2xlarge has up to 10 Gb/s.

  dt_fm.py           writes dt-fm-*.toml and dt-fm-*.csv beside this file
  dt_fm.py --check   writes nothing; exit status 1 if a file has other contents
"""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MACHINES = 64
SOURCE = "scheduler/generate_sim_com_matrices.py in github.com/DS3Lab/Decentralized_FM_alpha, commit cb03043"

WORLD = {
    "Oregon-Virginia": (67, 0.79), "Oregon-Ohio": (49, 1.10), "Oregon-Tokyo": (96, 0.523), "Oregon-Seoul": (124, 0.46),
    "Oregon-London": (136, 0.42), "Oregon-Frankfurt": (143, 0.404), "Oregon-Ireland": (124, 0.482),
    "Virginia-Ohio": (11, 1.12), "Virginia-Tokyo": (143, 0.524), "Virginia-Seoul": (172, 0.500),
    "Virginia-London": (76, 1.16), "Virginia-Frankfurt": (90, 1.02), "Virginia-Ireland": (67, 1.05),
    "Ohio-Tokyo": (130, 0.694), "Ohio-Seoul": (159, 0.529), "Ohio-London": (86, 1.05), "Ohio-Frankfurt": (99, 0.799),
    "Ohio-Ireland": (77, 1.14), "Tokyo-Seoul": (34, 1.10), "Tokyo-London": (210, 0.366), "Tokyo-Frankfurt": (223, 0.36),
    "Tokyo-Ireland": (199, 0.465), "Seoul-London": (238, 0.342), "Seoul-Frankfurt": (235, 0.358),
    "Seoul-Ireland": (228, 0.335), "London-Frankfurt": (14, 1.14), "London-Ireland": (12, 1.09), "Frankfurt-Ireland": (24, 1.08),
}
REGIONAL = {
    "Virginia-Oregon": (67, 1.15), "Virginia-California": (59, 1.05), "Virginia-Ohio": (11, 1.12),
    "Oregon-California": (12, 1.25), "Oregon-Ohio": (49, 1.10), "California-Ohio": (52, 1.02),
}
UNIVERSITIES = {"Ohio-Virginia": (11, 1.12)}

# name: regions in the order of the machines, (delay in ms, Gb/s) between regions, the same inside a region
CASES = {
    "dt-fm-3-universities": (["Ohio", "Virginia"], UNIVERSITIES, (1, 5)),
    "dt-fm-4-regional": (["Virginia", "Oregon", "California", "Ohio"], REGIONAL, (10, 2)),
    "dt-fm-5-worldwide": (["Oregon", "Virginia", "Ohio", "Tokyo", "Seoul", "London", "Frankfurt", "Ireland"], WORLD, (10, 2)),
}


def link(pairs, inside, a, b):
    if a == b:
        return inside
    return pairs.get(f"{a}-{b}") or pairs[f"{b}-{a}"]


def files():
    for name, (regions, pairs, inside) in CASES.items():
        region_of = [regions[i * len(regions) // MACHINES] for i in range(MACHINES)]
        rows = ["src_region,dst_region,throughput_median_bits_per_s,throughput_samples,rtt_median_ms"]
        for i in range(MACHINES):
            for j in range(MACHINES):
                if i != j:
                    delay_ms, gbit_per_s = link(pairs, inside, region_of[i], region_of[j])
                    rows.append(f"m{i:02},m{j:02},{gbit_per_s * 1e9:.0f},1,{2 * delay_ms}")
        yield f"{name}.csv", "\n".join(rows) + "\n"
        sites = "\n".join(f'[[site]]\nname = "m{i:02}"    # {region_of[i]}\nuplink = "10Gbps"\ndownlink = "10Gbps"\n'
                          for i in range(MACHINES))
        yield f"{name}.toml", (f"# 64 machines with a V100 each, in the authors' order. Written by dt_fm.py.\nname = \"{name}\"\n"
                               f"source = \"tc netem on each machine: {SOURCE}\"\npaths_csv = \"{name}.csv\"\n\n{sites}")


def main():
    stale = []
    for name, content in files():
        path = HERE / name
        if path.exists() and path.read_text() == content:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            path.write_text(content)
    if "--check" in sys.argv and stale:
        sys.exit(f"{', '.join(stale)}: different from the output of {__file__}")


if __name__ == "__main__":
    main()
