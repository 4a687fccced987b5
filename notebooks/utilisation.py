#!/usr/bin/env python3
"""Draws the README's picture: the utilisation of the GPUs in experiments/scenarios/four-regions.toml for slower and faster links.

    notebooks/utilisation.py [--fomoe build/release/bin/fomoe]     writes notebooks/utilisation.svg
    notebooks/utilisation.py --check                               exits with 1 if fomoe's results differ from the picture

Every point is a simulated run. The picture has its own background, light or dark according to the reader's preference.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURE = ROOT / "notebooks" / "utilisation.svg"
SCENARIO = "experiments/scenarios/four-regions.toml"
FACTORS = "0.001..100*8/decade"

# Name, CSS class, settings; then the height of the name on the axis, and its side of the line.
CURVES = [
    ("FoMoE, O_e = 1", "a", "method=fomoe local_steps=64 expert_overlap=1", 0.84, "right"),
    ("DiLoCo", "b", "method=diloco local_steps=64", 0.62, "right"),
    # All gradients in one transfer, which is faster here than PyTorch's buckets of 25 MiB: each has its own latencies.
    ("data-parallel (K = 1)", "c", "method=ddp local_steps=1 fragments=1", 0.35, "left"),
]

WIDTH, HEIGHT = 860, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 836, 66, 340
LOWEST, HIGHEST = 1e-3, 1e2

STYLE = """
  text { font: 14px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #24292f }
  .title { font-size: 17px; font-weight: 600 } .quiet { fill: #57606a }
  .card { fill: #ffffff; stroke: #d0d7de } .grid { stroke: #e4e8ec } .mark { stroke: #57606a; stroke-dasharray: 3 4 }
  .line { fill: none; stroke-width: 3 } .name { font-weight: 600 }
  .line.a { stroke: #0969a8 } .line.b { stroke: #a8470a; stroke-dasharray: 10 4 } .line.c { stroke: #6e40aa; stroke-dasharray: 3 3 }
  .name.a { fill: #0969a8 } .name.b { fill: #a8470a } .name.c { fill: #6e40aa }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .quiet { fill: #9da7b3 }
    .card { fill: #0d1117; stroke: #30363d } .grid { stroke: #252b33 } .mark { stroke: #9da7b3 }
    .line.a { stroke: #58b0f0 } .line.b { stroke: #f0a050 } .line.c { stroke: #c39bf5 }
    .name.a { fill: #58b0f0 } .name.b { fill: #f0a050 } .name.c { fill: #c39bf5 }
  }
"""


def simulated(fomoe: str, settings: str) -> list[tuple[float, float]]:
    """Pairs of rate factor and share of the time that the GPUs compute, by rising factor."""
    command = [fomoe, "sweep", SCENARIO, "--vary", f"platform.rate_factor={FACTORS}", "--output", "-"]
    for setting in settings.split():
        command += ["--set", "strategy." + setting]
    answer = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [(row["platform.rate_factor"], row["compute_utilization"]) for row in json.loads(answer)["rows"]]


def x_of(factor: float) -> float:
    return LEFT + (RIGHT - LEFT) * math.log(factor / LOWEST) / math.log(HIGHEST / LOWEST)


def y_of(share: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * share


def crossing(points: list[tuple[float, float]], share: float) -> float:
    """The factor at which the rising line passes the share."""
    for (f0, u0), (f1, u1) in zip(points, points[1:]):
        if u0 <= share <= u1:
            return f0 * (f1 / f0) ** ((share - u0) / (u1 - u0))
    return points[-1][0]


def text(x: float, y: float, words: str, classes: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{classes}" text-anchor="{anchor}">{words}</text>'


def line(x0: float, y0: float, x1: float, y1: float, classes: str) -> str:
    return f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" class="{classes}"/>'


def picture(curves: list[list[tuple[float, float]]]) -> str:
    described = "; ".join(f"{curve[0]}: 95 % at {crossing(points, 0.95):.2g} times the measured rates"
                          for curve, points in zip(CURVES, curves))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>Share of the time that GPUs compute, by link rate. {described}.</title>",
        f"<style>{STYLE}</style>",
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8" class="card"/>',
        text(24, 32, "Qwen3-30B-A3B in four cloud regions: how much of the time do the GPUs compute?", "title"),
    ]
    for percent in (0, 25, 50, 75, 100):
        y = y_of(percent / 100)
        parts += [line(LEFT, y, RIGHT, y, "grid"), text(LEFT - 8, y + 5, f"{percent} %", "quiet", "end")]
    for factor, words in ((1e-3, "÷ 1000"), (1e-2, "÷ 100"), (1e-1, "÷ 10"), (1, "as measured"), (10, "× 10"), (100, "× 100")):
        anchor = {1e-3: "start", 100: "end"}.get(factor, "middle")
        parts.append(text(x_of(factor), BOTTOM + 22, words, "quiet", anchor))
    parts += [line(x_of(1), TOP, x_of(1), BOTTOM, "mark"),
              text((LEFT + RIGHT) / 2, BOTTOM + 45, "rate of every link between the sites; K = 64 local steps between synchronisations", "quiet", "middle")]
    for (name, key, _, at, side), points in zip(CURVES, curves):
        path = " ".join(f"{'M' if i == 0 else 'L'}{x_of(f):.1f} {y_of(u):.1f}" for i, (f, u) in enumerate(points))
        parts.append(f'<path d="{path}" class="line {key}"/>')
        x = x_of(crossing(points, at))
        parts.append(text(x - 12, y_of(at), name, f"name {key}", "end") if side == "left" else
                     text(x + 12, y_of(at) + 10, name, f"name {key}"))
    return "\n".join(parts) + "\n</svg>\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fomoe", default=str(ROOT / "build/release/bin/fomoe"))
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    drawn = picture([simulated(str(pathlib.Path(arguments.fomoe).resolve()), curve[2]) for curve in CURVES])
    if not arguments.check:
        PICTURE.write_text(drawn, encoding="utf-8")
        return 0
    if PICTURE.read_text(encoding="utf-8") == drawn:
        return 0
    print(f"{PICTURE.relative_to(ROOT)} differs from fomoe's current results; run notebooks/utilisation.py to update it", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
