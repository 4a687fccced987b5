#!/usr/bin/env python3
"""Checks published_quality.py by leaving papers out, and prints its answers and constants.

    tests/reference/published_quality_left_out.py left-out             # each paper predicted from the others, beside two other calculators
    tests/reference/published_quality_left_out.py predict              # what is predicted of the tables that are kept for the end, as CSV
    tests/reference/published_quality_left_out.py check                # these predictions, as committed, against the tables
    tests/reference/published_quality_left_out.py plot FILE.svg        # predicted against published, by paper (needs matplotlib)
    tests/reference/published_quality_left_out.py constants            # what the C++ implementation has to reproduce
    tests/reference/published_quality_left_out.py vectors 200          # answers to drawn settings, as lines of JSON, to compare an implementation with
    tests/reference/published_quality_left_out.py level --parameters 1e9 --tokens 2e10 --replicas 4 --local-steps 100 --steps 40000
"""

import argparse
import csv
import dataclasses
import json
import math
import random
import statistics
import sys

import published_quality as quality

CHECK_TABLE = quality.TABLE.with_name("published_quality_check.csv")
PREDICTED = quality.TABLE.with_name("published_quality_predicted.csv")
NOISE = quality.quantile(10) * math.sqrt(2) * 0.2758609238  # what two runs differ by, 80 % (run_sd of the model)
SAME = ["paper", "method", "parameters_active", "outer_optimizer", "outer_learning_rate", "wire_bits", "data", "same_data", "batch_rule", "baseline_kind",
        "baseline_value", "metric"]


def setting_of(row):
    size = float(row["parameters_active"])
    method = {"nesterov": "diloco", "streaming": "streaming_diloco", "overlap": "eager_diloco"}[row["family"]]
    # Where tokens are not stated, the paper has about 20 a parameter; where steps are not, rounds are not few.
    return quality.Setting(size, float(row["tokens"] or 20 * size), int(row["replicas"]), int(row["local_steps"]), float(row["steps"] or math.inf), method,
                           wire_bits=float(row["wire_bits"] or 16))


def published_level(row):
    return quality.points(quality.nats(row), quality.nats(row, "baseline_value"))


def pairs_of(rows, same=SAME):
    """Pairs of runs that differ in M and K alone, for the same tokens."""
    for index, a in enumerate(rows):
        for b in rows[index + 1:]:
            if all(a[key] == b[key] for key in same) and (a["replicas"], a["local_steps"]) != (b["replicas"], b["local_steps"]) and \
               (a["replicas"] == b["replicas"] or a["tokens"]) and (a["tokens"] == b["tokens"]):
                yield a, b


def published_contrast(a, b):
    base = quality.nats(a, "baseline_value") or quality.nats(a)
    return quality.points(quality.nats(b), base) - quality.points(quality.nats(a), base)


# Runs whose baselines one paper trained with two numbers of tokens.
TWO_BUDGETS = [("forgather-162M-2.3B-M4-K20", "forgather-162M-25.0B-M4-K20"),
               ("noloco-1300M-Reddit-M16-PP4-diloco", "noloco-1300M-Reddit-M16-PP4-diloco-2M")]


# Rules of other calculators, as points above M = 1 and K = 1 on the same tokens.

def scaling_law_page(s):
    """github.com/mino98/diloco-calculator at 739c23f, index.html: L = 19.226 N^-0.0985 M^0.0116, without K."""
    return 100 * (s.replicas ** 0.0116 - 1)


def decentralized_simulator(s):
    """github.com/robirahman/miri-decentralized-training-report at 6e97c6be, evasion_calculator.py: a factor on the loss that grows with M and ln K, and an
    efficiency 1 - alpha log10 K of the compute, here of the tokens. K is charged twice. One node has no penalty."""
    if s.replicas == 1:
        return 0.0
    beta = 1.0923 * s.parameters ** -0.2342 * math.log(s.local_steps) / math.log(30)
    efficiency = max(0.4, 1 - 0.08 / (1 + math.log10(s.parameters / 1e9) / 5) * math.log10(s.local_steps))
    e, a, alpha, b, beta_data = quality.LAWS["Besiroglu et al. 2024"]
    loss = [e + a / s.parameters ** alpha + b / tokens ** beta_data for tokens in (s.tokens, s.tokens * efficiency)]
    return 100 * (s.replicas ** beta * loss[1] / loss[0] - 1)


RULES = {"scaling-law page": scaling_law_page, "decentralized simulator": decentralized_simulator, "zero": lambda s: 0.0}


def left_out(rows):
    """(levels, contrasts): lists of (paper, what, published, Estimate, {rule: points}) of covered settings in papers that the model was built without"""
    levels, contrasts = [], []
    papers = dict.fromkeys(row["paper"] for row in rows if row["family"] == "nesterov" and quality.usable(row))
    full = quality.Model(rows)
    for paper in papers:
        runs = [row for row in rows if row["paper"] == paper and row["family"] == "nesterov" and quality.usable(row) and quality.nats(row)]
        if paper == quality.SURFACE_PAPER:
            for column in full.left_out().values():
                for error, id in column.values():
                    row = full.by_id[id]
                    estimate = quality.Estimate(published_level(row) + error, full.level_half)
                    levels.append((paper, id, published_level(row), estimate, {name: rule(setting_of(row)) for name, rule in RULES.items()}, row))
            continue
        model = quality.Model(rows, without={paper})
        for row in runs:
            if row["baseline_kind"] == "data_parallel" and not (estimate := model.level(setting_of(row))).reasons:
                levels.append((paper, row["id"], published_level(row), estimate, {name: rule(setting_of(row)) for name, rule in RULES.items()}, row))
        for a, b in pairs_of(runs):
            one, two = setting_of(a), setting_of(b)
            if not (estimate := model.contrast(one, two)).reasons:
                rules = {name: rule(two) - rule(one) for name, rule in RULES.items()}
                contrasts.append((paper, f"{a['id']} {b['id']}", published_contrast(a, b), estimate, rules, b))
    return levels, contrasts


def summary(entries, point=lambda estimate, rules: estimate.points):
    errors = [point(estimate, rules) - published for _, _, published, estimate, rules, _ in entries]
    beyond = [(point(estimate, rules), published) for _, _, published, estimate, rules, _ in entries if abs(published) > NOISE]
    return {"runs": len(errors), "rmse": math.sqrt(statistics.fmean(e * e for e in errors)), "bias": statistics.fmean(errors),
            "within 0.8": 100 * statistics.fmean(abs(e) <= 0.8 for e in errors),
            "signs": f"{sum(p * o > 0 for p, o in beyond)}/{len(beyond)}"}


def coverage(entries):
    """Per cent of the published values inside the interval: of all, and the mean over papers."""
    inside = {}
    for paper, _, published, estimate, _, _ in entries:
        inside.setdefault(paper, []).append(abs(estimate.points - published) <= estimate.half)
    everything = [value for values in inside.values() for value in values]
    return 100 * statistics.fmean(everything), 100 * statistics.fmean(statistics.fmean(values) for values in inside.values())


def line(name, entries, point=None, covered=True):
    found = summary(entries, point) if point else summary(entries)
    text = f"{name:46} {found['runs']:4} {found['rmse']:6.2f} {found['bias']:+6.2f} {found['within 0.8']:7.0f} % {found['signs']:>8}"
    print(text + (" {:7.0f} % {:7.0f} %".format(*coverage(entries)) if covered else ""))


def print_left_out(rows):
    levels, contrasts = left_out(rows)
    tuned = [entry for entry in levels if entry[5]["baseline_tuned"] in quality.TUNED]
    print(f"{'points; noise of a difference ' + format(NOISE, '.2f'):46} runs   rmse   bias  within 0.8   signs   80 % all, by paper")
    for title, entries in [("level, tuned baselines", tuned), ("level, other baselines", [entry for entry in levels if entry not in tuned]),
                           ("differences", contrasts)]:
        line(title, entries)
        for paper in dict.fromkeys(entry[0] for entry in entries):
            line("  " + paper, [entry for entry in entries if entry[0] == paper])
    outside = [entry for entry in tuned if entry[0] != quality.SURFACE_PAPER]
    print("\nother calculators, on the rows that they were not fitted to")
    for title, entries in [("differences", contrasts), ("level, tuned baselines", outside)]:
        line(f"{title}: this model", entries, covered=False)
        for name in RULES:
            line(f"{title}: {name}", entries, lambda _, rules, name=name: rules[name], covered=False)
    print("\nfactor of tokens: measured, from the published points by each law, and what the model without the paper says of the setting at its end")
    for name, measured, size, tokens, percent, ends in token_ratios(rows):
        found = [quality.tokens_factor(size, tokens, percent, law) for law in quality.LAWS]
        print(f"{name:46} {measured:5.2f}   {', '.join(f'{factor:.2f}' for factor in found)}   {ends}")


def token_ratios(rows):
    """[(what, measured ratio, N, D, points, ends of the model)]: tokens to the loss of the baseline, and baselines that a paper trained with two budgets"""
    by_id, found = {row["id"]: row for row in rows}, []
    for row in [row for row in rows if row["metric"] == "token_ratio"]:
        run = by_id[row["id"].removesuffix("-tokens")]
        model, setting = quality.Model(rows, without={row["paper"]}), setting_of(run)
        factors = [end for ends in quality.factors(setting, model.level(setting)).values() for end in ends]
        ends = f"{min(end for end in factors if end):.2f} to {'none' if None in factors else format(max(factors), '.2f')}"
        size, tokens = float(row["parameters_active"]), float(row["tokens"])
        found.append((row["id"], float(row["value"]), size, tokens, published_level(by_id[f"{run['id']}-step{row['steps']}"]), ends))
    for few, many in TWO_BUDGETS:
        percent = quality.points(quality.nats(by_id[few], "baseline_value"), quality.nats(by_id[many], "baseline_value"))
        size, tokens = float(by_id[few]["parameters_active"]), float(by_id[few]["tokens"])
        found.append((f"baselines of {few.split('-M')[0]}", float(by_id[many]["tokens"]) / tokens, size, tokens, percent, ""))
    return found


def predictions():
    """[(kind, id, id, points, half)] of the tables that are kept for the end, from the rows of the table to build from"""
    model, rows = quality.Model(), quality.read(CHECK_TABLE)
    found = []
    for row in rows:
        estimate = model.level(setting_of(row))
        found.append(("level", row["id"], "", estimate))
    for index, a in enumerate(rows):
        for b in rows[index + 1:]:
            if all(a[key] == b[key] for key in ("parameters_active", "tokens", "data", "arxiv")) and setting_of(a) != setting_of(b):
                found.append(("difference", a["id"], b["id"], model.contrast(setting_of(a), setting_of(b))))
    return found


def predict(file):
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["kind", "id", "other", "points", "half", "reason"])
    for kind, a, b, estimate in predictions():
        numbers = ["", ""] if estimate.reasons else [f"{estimate.points:.4f}", f"{estimate.half:.4f}"]
        writer.writerow([kind, a, b, *numbers, "; ".join(estimate.reasons)])


def checked():
    """(levels, contrasts) as those of left_out(), of the committed predictions and the tables that are kept for the end"""
    rows = {row["id"]: row for row in quality.read(CHECK_TABLE)}
    levels, contrasts = [], []
    for entry in quality.read(PREDICTED):
        if entry["reason"]:
            continue
        row, estimate = rows[entry["id"]], quality.Estimate(float(entry["points"]), float(entry["half"]))
        if entry["kind"] == "level":
            rules = {name: rule(setting_of(row)) for name, rule in RULES.items()}
            levels.append((row["paper"], row["id"], published_level(row), estimate, rules, row))
        else:
            other = rows[entry["other"]]
            rules = {name: rule(setting_of(other)) - rule(setting_of(row)) for name, rule in RULES.items()}
            contrasts.append((row["paper"], f"{row['id']} {other['id']}", published_contrast(row, other), estimate, rules, other))
    return levels, contrasts


def print_check():
    levels, contrasts = checked()
    fragments = [entry for entry in levels if entry[5]["family"] == "streaming"]
    same = [entry for entry in contrasts if len({quality_family(id) for id in entry[1].split()}) == 1]
    print(f"{'points':46} runs   rmse   bias  within 0.8   signs   80 % all, by paper")
    other = [entry for entry in contrasts if entry not in same]
    for title, entries in [("level", levels), ("  DiLoCo", [entry for entry in levels if entry not in fragments]), ("  streaming, 4 bits", fragments),
                           ("differences", contrasts), ("  in M and K, one method", same), ("  DiLoCo to streaming, 4 bits", other)]:
        if entries:
            line(title, entries)
    for title, entries in [("differences", contrasts), ("level", levels)]:
        for name in RULES:
            line(f"{title}: {name}", entries, lambda _, rules, name=name: rules[name], covered=False)


def quality_family(id):
    return "diloco" if "diloco" in id else "streaming"


def plot(rows, file):
    import matplotlib
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "published_quality", "svg.fonttype": "none"})
    from matplotlib import pyplot
    levels, contrasts = left_out(rows)
    tuned = [entry for entry in levels if entry[5]["baseline_tuned"] in quality.TUNED]
    other = [entry for entry in levels if entry not in tuned]
    after_levels, after_contrasts = checked() if PREDICTED.exists() else ([], [])
    figure, axes = pyplot.subplots(1, 3, figsize=(13.5, 5.2))
    panels = [("Level: tuned baselines, and the check", tuned + after_levels), ("Level: other baselines", other),
              ("Differences in M and K", contrasts + after_contrasts)]
    papers = list(dict.fromkeys(entry[0] for _, entries in panels for entry in entries))
    markers, colors = "osD^vP<>XphH", pyplot.get_cmap("tab10").colors
    for axis, (title, entries) in zip(axes, panels):
        values = [x for e in entries for x in (e[2], e[3].points)]
        low, high = min(values) - 0.5, max(values) + 0.5
        axis.plot([low, high], [low, high], color="0.6", linewidth=0.8, zorder=0)
        for paper in papers:
            mine = [entry for entry in entries if entry[0] == paper]
            if mine:
                index = papers.index(paper)
                axis.errorbar([e[3].points for e in mine], [e[2] for e in mine], xerr=[min(e[3].half, high - low) for e in mine], fmt=markers[index % 12],
                              color=colors[index % 10], markersize=4.5, elinewidth=0.4, label=f"{paper} ({len(mine)})", alpha=0.85)
        axis.set(title=title, xlabel="predicted, with 80 % interval (points)", ylabel="published (points)", xlim=(low, high), ylim=(low, high), aspect="equal")
        axis.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.13), frameon=False)
    figure.tight_layout()
    figure.savefig(file, bbox_inches="tight", metadata={"Date": None} if file.endswith("svg") else None)


def print_constants():
    model = quality.Model()
    print(f"slope {model.slope:.10f} half {model.slope_half:.10f} studies {len(model.slopes)}")
    print(f"level half {model.level_half:.10f}, replicas half {model.replica_half:.10f}, run sd {model.run_sd:.10f}")
    for replicas, entries in model.columns.items():
        print(f"M = {replicas}: " + ", ".join(f"{math.exp(x):.6g} {y:.10f} {id}" for x, y, id in entries))
    for name, table in [("slope", model.slopes), ("level", model.level_errors), ("replicas", model.replica_errors)]:
        for paper, (value, ids) in table.items():
            print(f"{name}, {paper}: {value:.10f} from {len(ids)} rows: {', '.join(ids)}")
    for size in (35e6, 100e6, 200e6, 300e6, 500e6, 1000e6):
        print("eager {:.6g}: {:.10f} half {:.10f}".format(size, *model.eager_term(size)[:2]))


def drawn(rng):
    """A setting; about half of them are covered."""
    size, replicas = 10 ** rng.uniform(7.4, 10.3), rng.choice([1, 2, 3, 4, 5, 6, 8, 8, 9])
    return quality.Setting(size, size * rng.choice([10, 20, 20, 20, 100, 300, 1000]), replicas, rng.choice([5, 20, 30, 30, 64, 100, 500]),
                           rng.choice([1000, 5000, 20000, 1000000]), rng.choice(["ddp", "diloco", "diloco", "diloco", "streaming_diloco", "eager_diloco"]),
                           rng.choice(["dense", "mixture"]), wire_bits=rng.choice([4, 8, 16, 32]), expert_overlap=rng.choice([0, 0, 0, replicas]))


def as_json(estimate):
    entry = dataclasses.asdict(estimate)
    if estimate.half:
        entry.update(equal=estimate.equal, probability_above_0=estimate.probability_above_0)
    return entry


def print_vectors(count):
    model, rng = quality.Model(), random.Random(1)
    for _ in range(count):
        setting = drawn(rng)
        other = dataclasses.replace(setting, replicas=rng.choice([2, 4, 8]), local_steps=rng.choice([20, 30, 100, 200]), expert_overlap=0,
                                    method=rng.choice(["diloco", "streaming_diloco", "eager_diloco"]), wire_bits=rng.choice([4, 16]))
        level = model.level(setting)
        print(json.dumps({"setting": dataclasses.asdict(setting), "level": as_json(level), "nearest": model.nearest(setting),
                          "tokens": {} if level.reasons else quality.factors(setting, level),
                          "other": dataclasses.asdict(other), "difference": as_json(model.contrast(setting, other))}))


def print_level(options):
    model, setting = quality.Model(), quality.Setting(**options)
    estimate = model.level(setting)
    if estimate.reasons:
        print("\n".join(estimate.reasons))
        return
    print(f"{estimate.points:+.10f} half {estimate.half:.10f} points, {estimate.studies} studies")
    for law, ends in quality.factors(setting, estimate).items():
        print(f"tokens × {', '.join('none' if end is None else format(end, '.10f') for end in ends)} ({law})")
    print("nearest:", ", ".join(model.nearest(setting)))
    print("rows:", ", ".join(estimate.rows))
    print("\n".join(estimate.notes))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answer", choices=["left-out", "predict", "check", "plot", "constants", "vectors", "level"])
    parser.add_argument("file", nargs="?")
    for name, kind in [("parameters", float), ("tokens", float), ("replicas", int), ("local-steps", int), ("steps", float), ("wire-bits", float),
                       ("method", str)]:
        parser.add_argument(f"--{name}", type=kind)
    options = {name: value for name, value in vars(parser.parse_args()).items() if value is not None}
    answer, file = options.pop("answer"), options.pop("file", None)
    rows = quality.read()
    {"left-out": lambda: print_left_out(rows), "predict": lambda: predict(sys.stdout), "check": print_check, "plot": lambda: plot(rows, file),
     "constants": print_constants, "vectors": lambda: print_vectors(int(file)), "level": lambda: print_level(options)}[answer]()


if __name__ == "__main__":
    main()
