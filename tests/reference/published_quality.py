#!/usr/bin/env python3
"""What published runs say of the loss of local-update training: the reference implementation of `[quality] model = "published"`.

    tests/reference/published_quality.py level --parameters 1e9 --tokens 2e10 --replicas 4 --local-steps 100 --steps 40000

A point is 1 % of the loss (nats a token). Intervals hold 80 %: they reach as far as the two ends of a one-sided 90 % quantile of Student's t.
The table is experiments/data/published_quality.csv; its page says what could mislead. Only rows that were compared with their source are used.

The model of the level, in points above tuned data-parallel training of the same model on the same tokens:

    level(N, M, K) = surface(N, M) + slope · x(K) + format + overlap,        x(K) = log2(max(K, 20) / 30)

surface: ratios that Charles et al. measured (arXiv 2503.09799, Tables 4 and 5; K = 30), linear in ln N and in log2 M between measured ones.
slope: mean over studies; a study is a paper, whatever the number of its rows. No law is evaluated outside the rows.
"""

import argparse
import csv
import dataclasses
import math
import pathlib
import statistics

TABLE = pathlib.Path(__file__).parents[2] / "experiments/data/published_quality.csv"
SURFACE_PAPER = "Charles et al. 2025"

# One-sided 90 % quantile of Student's t by degrees of freedom 1 to 10; more degrees use the last. Derived in the test by integration.
T90 = [3.0776835372, 1.8856180832, 1.6377443536, 1.5332062741, 1.4758840488, 1.4397557473, 1.4149239277, 1.3968153098, 1.3830287384, 1.3721836411]

SURFACE_STEPS = 30  # K of all runs of the surface
LEAST_STEPS = 20    # the smallest K of the rows that carry the slope; below it, the level of K = 20 is kept
LEAST_ROUNDS = 20
MOST_REPLICAS = 8
LEVEL_PARAMETERS = (3.4e7, 1e10)
CONTRAST_PARAMETERS = (2e7, 3e10)
LEVEL_TOKENS = (15, 340)       # a parameter: from 2502.12996 (100M) to 2509.10439 (150M)
CONTRAST_TOKENS = (15, 1900)   # to 2311.08105 (150M)
TOLERANCE = 1.01               # covers rounding to whole steps, and norms that are counted or not

RATIO_ROW, RATIO_LOSS = "diloco-150M-K1000-vs-K50", "diloco-150M-M8-noniid"
TUNED = ("yes", "extrapolated")
FEW_ROUNDS_ROW = "forgather-34M-1x-M2-K500"
FORMAT_ROWS = ("forgather-lowprec-bf16-down", "forgather-lowprec-bf16-down-stochastic-rounding", "forgather-lowprec-bf16-up-stochastic-rounding")
EAGER_ROWS = ("eager-t2-1-outer-step-eager", "eager-t2-no-overlap")
STREAMING_ROWS = ("eager-t2-no-overlap", "eager-t2-1-inner-step")
FEW_BITS_HALF = 0.3   # of 4 to 15 bits: a claim without a usable row
STREAMING_HALF = 0.3  # of fragments with a few steps of overlap: one usable pair of rows, rounded to 0.37 points

# L(N, D) = E + A / N^alpha + B / D^beta in nats a token, N in parameters, D in tokens.
LAWS = {
    # Hoffmann et al. 2022, arXiv 2203.15556, section 3.3, as printed there.
    "Hoffmann et al. 2022": (1.69, 406.4, 0.34, 410.7, 0.28),
    # Besiroglu et al. 2024, arXiv 2404.10102: the same runs, fitted anew. Standard errors of B and beta: 1293 and 0.02.
    "Besiroglu et al. 2024": (1.8172, 482.01, 0.3478, 2085.43, 0.3658),
}


@dataclasses.dataclass(frozen=True)
class Setting:
    """What is trained, and how. `parameters` counts those that a token uses; `tokens` those of all replicas; `steps` those of one replica."""
    parameters: float
    tokens: float
    replicas: int
    local_steps: int
    steps: float
    method: str = "diloco"        # "ddp", "diloco" (outer Nesterov), "streaming_diloco", "eager_diloco"
    architecture: str = "dense"   # or "mixture"
    inner_optimizer: str = "adamw"
    wire_bits: float = 16         # of a value that is sent up
    density: float = 1            # share of the values that are sent
    expert_overlap: int = 0       # O_e; 0 and M: every site holds every expert
    same_data: bool = True        # all sites draw from one distribution

    @property
    def rounds(self):
        return self.steps / self.local_steps


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Points (1 % of the loss), the half-width of the 80 % interval, and where they come from; `reasons` is not empty where nothing is said."""
    points: float = 0.0
    half: float = 0.0
    rows: tuple = ()
    studies: int = 0
    reasons: tuple = ()
    notes: tuple = ()

    @property
    def equal(self):
        """Whether a contrast is "=": 0 lies inside its interval."""
        return abs(self.points) <= self.half


def read(path=TABLE):
    with open(path, newline="") as file:
        return list(csv.DictReader(file, strict=True))


def nats(row, column="value"):
    """The loss of a cell in nats; None if the cell has none. Bits a byte are nats a byte after the change of unit: only ratios are used."""
    if not row[column] or row["metric"] not in ("loss", "perplexity", "bits_per_byte"):
        return None
    value = float(row[column])
    return {"loss": value, "perplexity": math.log(value), "bits_per_byte": value * math.log(2)}[row["metric"]]


def points(value, baseline):
    return 100 * (value / baseline - 1)


def usable(row):
    return row["hand"] == "first" and row["checked"] == "yes" and row["outcome"] == "finished"


def quantile(degrees):
    return T90[min(degrees, len(T90)) - 1]


def x_of(local_steps):
    """Doublings of K above that of the surface."""
    return math.log2(max(local_steps, LEAST_STEPS) / SURFACE_STEPS)


def student_cdf(t, degrees):
    """P(T ≤ t) for whole degrees of freedom, by the finite sums of Abramowitz and Stegun 26.7.3 and 26.7.4."""
    theta = math.atan(t / math.sqrt(degrees))
    if degrees % 2:
        term, total = math.cos(theta), 0.0
        for k in range(1, degrees // 2 + 1):
            total += term
            term *= 2 * k / (2 * k + 1) * math.cos(theta) ** 2
        return 0.5 + (theta + math.sin(theta) * total) / math.pi
    term, total = 1.0, 0.0
    for k in range(1, degrees // 2 + 1):
        total += term
        term *= (2 * k - 1) / (2 * k) * math.cos(theta) ** 2
    return 0.5 + 0.5 * math.sin(theta) * total


def tokens_factor(setting, percent, law):
    """Factor of tokens that makes up for `percent` points of loss with one law; None if no number of tokens does.

    The method's loss on D tokens is (1 + p) L(N, D), with the same p for every D. (1 + p) L(N, r D) = L(N, D) then gives
    r = (1 - L / (B / D^beta) · p / (1 + p))^(-1 / beta).
    """
    e, a, alpha, b, beta = LAWS[law]
    data = b / setting.tokens ** beta
    loss = e + a / setting.parameters ** alpha + data
    share = percent / 100
    left = 1 - loss / data * share / (1 + share)
    return left ** (-1 / beta) if left > 0 else None


class Model:
    """The published rows, and what follows from them. `without` leaves papers out, `without_sizes` sizes of the surface (to check the model)."""

    def __init__(self, rows=None, without=(), without_sizes=()):
        self.rows = [row for row in (read() if rows is None else rows) if usable(row) and row["paper"] not in without]
        self.by_id = {row["id"]: row for row in self.rows}
        surface = [row for row in self.rows if row["paper"] == SURFACE_PAPER and row["family"] == "nesterov"]
        # {M: [(ln N, points, id), ...] by rising N}: of each size and M the row of the paper's main tables.
        self.surface_rows = {}
        for row in surface:
            size = float(row["parameters_active"])
            if size not in without_sizes and not row["id"].endswith("-independent"):
                entry = math.log(size), points(nats(row), nats(row, "baseline_value")), row["id"]
                self.surface_rows.setdefault(int(row["replicas"]), []).append(entry)
        for entries in self.surface_rows.values():
            entries.sort()
        self.slopes = self._slopes()
        values = [slope for slope, _ in self.slopes.values()]
        self.slope = statistics.fmean(values) if values else math.nan
        # Of a study that is not among these: its own deviation, and that of the mean.
        self.slope_half = quantile(len(values) - 1) * statistics.stdev(values) * math.sqrt(1 + 1 / len(values)) if len(values) > 1 else math.inf
        self.run_sd = self._run_sd()
        self.level_errors = self._level_errors()
        self.replica_errors = self._replica_errors()

    # The surface.

    def _at(self, replicas, log_n):
        """Points at a measured M, linear in ln N, kept constant outside the measured sizes; and the ids of the rows."""
        entries = self.surface_rows[replicas]
        if log_n <= entries[0][0]:
            return entries[0][1], {entries[0][2]}
        for (x0, y0, id0), (x1, y1, id1) in zip(entries, entries[1:]):
            if log_n < x1:
                return y0 + (y1 - y0) * (log_n - x0) / (x1 - x0), {id0, id1} if log_n > x0 else {id0}
        last = entries[-1]
        if replicas == 8 and log_n > last[0]:
            # M = 8 was measured up to 2.4e9: beyond, what 8 replicas cost more than 4 there is kept. It fell with every size.
            four, ids = self._at(4, log_n)
            return four + last[1] - self._at(4, last[0])[0], ids | {last[2]}
        return last[1], {last[2]}

    def surface(self, parameters, replicas):
        """Points above data-parallel training at K = 30, and the ids of the rows."""
        log_n, log_m = math.log(parameters), math.log2(replicas)
        low = min(int(log_m), 2)
        below, ids = self._at(2 ** low, log_n)
        if log_m == low:
            return below, ids
        above, more = self._at(2 ** (low + 1), log_n)
        return below + (log_m - low) * (above - below), more if log_m == low + 1 else ids | more

    # Slope, noise and errors, each from rows.

    @staticmethod
    def same_but(row, *columns):
        """What two runs have in common if they differ in `columns` alone."""
        keys = ["paper", "method", "parameters_active", "tokens", "replicas", "local_steps", "outer_optimizer", "outer_learning_rate", "wire_bits",
                "density", "overlap_steps", "data", "same_data", "batch_rule", "baseline_kind", "steps", "metric"]
        return tuple(row[key] for key in keys if key not in columns)

    def groups(self, *columns):
        """Groups of at least two usable runs of DiLoCo with 2 to 8 replicas of at least 2e7 parameters and 20 rounds that differ in `columns`, the first of which differs."""
        groups = {}
        for row in self.rows:
            rounds = float(row["rounds"]) if row["rounds"] else math.inf
            if row["family"] == "nesterov" and nats(row) and not row["id"].endswith("-independent") and rounds >= LEAST_ROUNDS and \
               2 <= int(row["replicas"]) <= MOST_REPLICAS and float(row["parameters_active"]) >= CONTRAST_PARAMETERS[0]:
                groups.setdefault(self.same_but(row, *columns), []).append(row)
        return [group for group in groups.values() if len({row[columns[0]] for row in group}) > 1]

    def _slopes(self):
        """{paper: (points a doubling of K, ids)}: least squares in each group of runs, and the mean over a paper's groups."""
        found = {}
        for group in self.groups("local_steps", "rounds"):
            base = nats(group[0], "baseline_value") or nats(group[0])
            xs = [x_of(int(row["local_steps"])) for row in group]
            ys = [points(nats(row), base) for row in group]
            found.setdefault(group[0]["paper"], []).append((statistics.linear_regression(xs, ys).slope, [row["id"] for row in group]))
        for row in self.rows:
            # One paper prints the ratio of two perplexities, whose loss is that of its run with another K.
            if row["metric"] == "perplexity_ratio" and row["baseline_kind"].startswith("diloco_K") and row["id"] == RATIO_ROW:
                doublings = x_of(int(row["local_steps"])) - x_of(int(row["baseline_kind"].removeprefix("diloco_K")))
                rise = 100 * math.log(float(row["value"])) / nats(self.by_id[RATIO_LOSS])
                found.setdefault(row["paper"], []).append((rise / doublings, [row["id"]]))
        return {paper: (statistics.fmean(slope for slope, _ in groups), tuple(id for _, ids in groups for id in ids)) for paper, groups in found.items()}

    def _run_sd(self):
        """Standard deviation of one run in points: Charles et al. trained six runs twice, with two extrapolations of the hyperparameters."""
        pairs = [(nats(row), nats(self.by_id[row["id"].removesuffix("-independent")])) for row in self.rows if row["id"].endswith("-independent")]
        return math.sqrt(statistics.fmean(points(a, b) ** 2 for a, b in pairs) / 2) if pairs else math.nan

    def _left_out(self):
        """{M: {ln N: (error of the surface where this size is left out and both its neighbours are not, id)}}"""
        return {replicas: {x: (y0 + (y1 - y0) * (x - x0) / (x1 - x0) - y, id) for (x0, y0, _), (x, y, id), (x1, y1, _) in zip(e, e[1:], e[2:])}
                for replicas, e in self.surface_rows.items()}

    def _level_errors(self):
        """{paper: (root mean square of surface − published in points, ids)} where the data-parallel baseline was tuned and K is near 30."""
        errors = {SURFACE_PAPER: [error for column in self._left_out().values() for error in column.values()]} if self.surface_rows else {}
        for row in self.rows if self.surface_rows else []:
            if row["family"] == "nesterov" and row["baseline_tuned"] in TUNED and row["baseline_kind"] == "data_parallel" and nats(row) and \
               int(row["replicas"]) <= MOST_REPLICAS and abs(x_of(int(row["local_steps"]))) <= 1 and \
               (row["paper"] != SURFACE_PAPER or row["id"].endswith("-independent")):
                expected = self.surface(float(row["parameters_active"]), int(row["replicas"]))[0]
                errors.setdefault(row["paper"], []).append((expected - points(nats(row), nats(row, "baseline_value")), row["id"]))
        return {paper: (math.sqrt(statistics.fmean(e * e for e, _ in found)), tuple(id for _, id in found)) for paper, found in errors.items()}

    def _replica_errors(self):
        """{paper: (root mean square of the errors of differences between numbers of replicas from 2 to 8, ids)}"""
        errors = {}
        left_out = self._left_out()
        for low, high in [(2, 4), (2, 8), (4, 8)] if left_out else []:
            for x in left_out[low].keys() & left_out[high].keys():
                errors.setdefault(SURFACE_PAPER, []).append((left_out[high][x][0] - left_out[low][x][0], left_out[high][x][1]))
        # Where tokens are not stated, they may grow with the replicas.
        for group in [group for group in self.groups("replicas") if left_out and group[0]["tokens"]]:
            base = nats(group[0], "baseline_value") or nats(group[0])
            for i, first in enumerate(group):
                for second in group[i + 1:]:
                    if first["replicas"] != second["replicas"]:
                        a, b = (self.surface(float(row["parameters_active"]), int(row["replicas"]))[0] for row in (first, second))
                        errors.setdefault(first["paper"], []).append((b - a - points(nats(second), base) + points(nats(first), base), second["id"]))
        return {paper: (math.sqrt(statistics.fmean(e * e for e, _ in found)), tuple(sorted(id for _, id in found))) for paper, found in errors.items()}

    @staticmethod
    def half_of(errors):
        """Half-width of the 80 % interval from the errors of studies whose mean is taken as 0: as many degrees of freedom as studies."""
        return quantile(len(errors)) * math.sqrt(statistics.fmean(error ** 2 for error, _ in errors.values())) if errors else math.inf

    # Wire format and overlap: points on top of DiLoCo that sends 16 bits or more and waits.

    def format_term(self, setting):
        """(points, half-width, ids). Runs with 16 and 32 bits differ by less than their noise."""
        if setting.wire_bits >= 16:
            return 0.0, 0.0, ids_of(self.by_id, FORMAT_ROWS)
        return 0.0, FEW_BITS_HALF, ()

    def eager_term(self, parameters):
        """(points, half-width, ids) of a whole round of overlap, eagerly (Kale et al., one study).

        Centre: Table 6 (M = 2, K = 30) minus the surface, linear in ln N. Half-width: Student's t with one degree of freedom over the two estimates
        at 5e8 parameters, Table 6 minus the surface and Table 2 (eager minus no overlap).
        """
        entries = []
        for row in self.rows:
            if row["id"].startswith("eager-") and row["id"].endswith("M-K30"):
                size = float(row["parameters_active"])
                entries.append((math.log(size), points(nats(row), nats(row, "baseline_value")) - self.surface(size, 2)[0], row["id"]))
        entries.sort()
        log_n = min(max(math.log(parameters), entries[0][0]), entries[-1][0])
        index = min(sum(x <= log_n for x, _, _ in entries), len(entries) - 1)
        (x0, y0, id0), (x1, y1, id1) = entries[index - 1], entries[index]
        other = points(nats(self.by_id[EAGER_ROWS[0]]), nats(self.by_id[EAGER_ROWS[1]]))
        both = [y for x, y, _ in entries if abs(x - math.log(5e8)) < 1e-9] + [other]
        half = quantile(1) * statistics.stdev(both) * math.sqrt(1 + 1 / 2)
        return y0 + (y1 - y0) * (log_n - x0) / (x1 - x0), half, (id0, id1, *EAGER_ROWS)

    def overlap_term(self, setting):
        """(points, half-width, ids)"""
        if setting.method == "streaming_diloco":
            return 0.0, STREAMING_HALF, ids_of(self.by_id, STREAMING_ROWS)
        return self.eager_term(setting.parameters) if setting.method == "eager_diloco" else (0.0, 0.0, ())

    # What is covered.

    def most_steps(self, parameters):
        """(the largest K of a usable run of DiLoCo with at least 20 rounds and half the active parameters or more, its id)"""
        best = 0, ""
        for row in self.rows:
            rounds = float(row["rounds"]) if row["rounds"] else math.inf
            if row["family"] == "nesterov" and 2 * float(row["parameters_active"]) >= parameters and rounds >= LEAST_ROUNDS and int(row["local_steps"]) > best[0]:
                best = int(row["local_steps"]), row["id"]
        return best

    def refusals(self, s, level):
        """Sentences that say why nothing is said of a setting, each with its limit."""
        if s.method == "ddp":
            return ()
        found = []
        low, high = LEVEL_PARAMETERS if level else CONTRAST_PARAMETERS
        fewest, most = LEVEL_TOKENS if level else CONTRAST_TOKENS
        what = "the level of the loss" if level else "a difference of loss"
        ratio = s.tokens / s.parameters
        if s.method not in ("diloco", "streaming_diloco", "eager_diloco"):
            found.append(f"method {s.method} has no rows that were compared with DiLoCo by two papers; ddp, diloco, streaming_diloco and eager_diloco are covered")
        if s.inner_optimizer != "adamw":
            found.append(f"inner optimizer {s.inner_optimizer}; the rows have adamw")
        if s.expert_overlap not in (0, s.replicas):
            found.append(f"sites hold {s.expert_overlap} of {s.replicas} replicas of the experts; published runs have whole replicas at all sites")
        if not s.same_data:
            found.append("sites with different data; the rows are of sites that draw from one distribution")
        if s.wire_bits < 4:
            found.append(f"{s.wire_bits:.6g} bits on the wire; at least 4 are covered")
        if s.density < 1:
            found.append(f"a share of {s.density:.6g} of the values on the wire; only all values are covered")
        if s.replicas > MOST_REPLICAS:
            found.append(f"{s.replicas} replicas; at most {MOST_REPLICAS} are covered")
        if not low / TOLERANCE <= s.parameters <= high * TOLERANCE:
            found.append(f"{s.parameters:.6g} active parameters; {what} is covered from {low:.6g} to {high:.6g}")
        if not fewest / TOLERANCE <= ratio <= most * TOLERANCE:
            found.append(f"{ratio:.6g} tokens per active parameter; {what} is covered from {fewest} to {most}")
        if s.rounds < LEAST_ROUNDS:
            found.append(f"{s.rounds:.6g} rounds; at least {LEAST_ROUNDS} are covered, because losses rise steeply below (+6.2 % at 16 rounds in {FEW_ROUNDS_ROW})")
        steps, row = self.most_steps(s.parameters)
        if s.local_steps > steps:
            found.append(f"local_steps {s.local_steps}; runs of this size or half of it reach {steps} ({row})")
        return tuple(found)

    # The answers.

    def terms(self, s):
        """(points, ids, [half-widths of format and overlap])"""
        surface, ids = self.surface(s.parameters, s.replicas)
        wire, wire_half, wire_ids = self.format_term(s)
        overlap, overlap_half, overlap_ids = self.overlap_term(s)
        return surface + self.slope * x_of(s.local_steps) + wire + overlap, (*sorted(ids), *wire_ids, *overlap_ids), [wire_half, overlap_half]

    def slope_ids(self):
        return tuple(id for _, ids in self.slopes.values() for id in ids)

    def level(self, s):
        """Loss above tuned data-parallel training of the same model on the same tokens."""
        if reasons := self.refusals(s, True):
            return Estimate(reasons=reasons)
        if s.method == "ddp":
            return Estimate()
        x = x_of(s.local_steps)
        total, ids, halves = self.terms(s)
        half = math.hypot(self.half_of(self.level_errors), self.slope_half * x, *halves)
        return Estimate(total, half, ids + (self.slope_ids() if x else ()), len(self.slopes) if x else len(self.level_errors), (), self.notes(s))

    def contrast(self, a, b):
        """Loss of b above that of a, for the same model and the same tokens: the level cancels. One of them may be ddp: then it is the level."""
        if a.method == "ddp" or b.method == "ddp":
            estimate = self.level(a if b.method == "ddp" else b)
            return dataclasses.replace(estimate, points=-estimate.points) if b.method == "ddp" else estimate
        if reasons := self.refusals(a, False) + self.refusals(b, False):
            return Estimate(reasons=tuple(dict.fromkeys(reasons)))
        if (a.parameters, a.tokens) != (b.parameters, b.tokens):
            return Estimate(reasons=("a difference of loss is covered for one model and one number of tokens",))
        if a == b:
            return Estimate()
        (first, ids, halves), (second, more, others) = self.terms(a), self.terms(b)
        x = x_of(b.local_steps) - x_of(a.local_steps)
        changed = [h for one, two in zip(halves, others) if one != two for h in (one, two)]
        replicas = self.half_of(self.replica_errors) if a.replicas != b.replicas else 0.0
        noise = quantile(len(T90)) * math.sqrt(2) * self.run_sd
        half = math.hypot(noise, self.slope_half * x, replicas, *changed)
        used = tuple(dict.fromkeys(ids + more + (self.slope_ids() if x else ())))
        return Estimate(second - first, half, used, len(self.slopes) if x else len(self.replica_errors), (), self.notes(a))

    @staticmethod
    def notes(s):
        notes = []
        if s.architecture == "mixture":
            notes.append("rows are of dense models, taken at equal active parameters")
        if s.parameters > LEVEL_PARAMETERS[1]:
            notes.append("no row above 1e+10 active parameters has several replicas and a tuned baseline: the surface of 1e+10 is kept")
        if s.replicas > 4 and s.parameters > 2.4e9:
            notes.append("8 replicas were measured up to 2.4e+09 parameters: what they cost more than 4 there is kept")
        return tuple(notes)

    def nearest(self, s, count=4):
        """Ids of the usable runs of DiLoCo that are closest, by doublings of N, M and K together."""
        def distance(row):
            pairs = [(float(row["parameters_active"]), s.parameters), (float(row["replicas"]), s.replicas), (float(row["local_steps"]), s.local_steps)]
            return sum(abs(math.log2(a / b)) for a, b in pairs)
        runs = [row for row in self.rows if row["family"] == "nesterov" and row["baseline_kind"] == "data_parallel" and nats(row)]
        return [row["id"] for row in sorted(runs, key=distance)[:count]]


def probability_of_loss(estimate, degrees):
    """Probability that a contrast is above 0, of a Student's t around its points."""
    return student_cdf(estimate.points / (estimate.half / quantile(degrees)), degrees)


def ids_of(by_id, ids):
    return tuple(id for id in ids if id in by_id)


def factors(setting, estimate):
    """{law: (factor of tokens at the lower end, the centre and the upper end of an estimate)}; None where no number of tokens does."""
    ends = (estimate.points - estimate.half, estimate.points, estimate.points + estimate.half)
    return {law: tuple(tokens_factor(setting, end, law) for end in ends) for law in LAWS}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answer", choices=["level", "constants"])
    for name, kind in [("parameters", float), ("tokens", float), ("replicas", int), ("local-steps", int), ("steps", float), ("wire-bits", float), ("method", str)]:
        parser.add_argument(f"--{name}", type=kind, default={"wire-bits": 16, "method": "diloco"}.get(name))
    options = vars(parser.parse_args())
    model = Model()
    if options.pop("answer") == "constants":
        print(f"slope {model.slope:.10f} ± {model.slope_half:.10f}, level ± {model.half_of(model.level_errors):.10f}, "
              f"replicas ± {model.half_of(model.replica_errors):.10f}, run {model.run_sd:.10f}")
        for replicas, entries in model.surface_rows.items():
            print(f"M = {replicas}:", ", ".join(f"{math.exp(x):.6g} {y:.10f} {id}" for x, y, id in entries))
        for name, table in [("slope", model.slopes), ("level", model.level_errors), ("replicas", model.replica_errors)]:
            for paper, (value, ids) in table.items():
                print(f"{name}, {paper}: {value:.10f} ({len(ids)} rows)")
        return
    setting = Setting(**options)
    estimate = model.level(setting)
    print("\n".join(estimate.reasons) or f"{estimate.points:+.10f} ± {estimate.half:.10f} points, {estimate.studies} studies")
    if not estimate.reasons:
        for law, ends in factors(setting, estimate).items():
            print(f"tokens × {', '.join('none' if end is None else f'{end:.10f}' for end in ends)} ({law})")
        print("nearest:", ", ".join(model.nearest(setting)))
        print("\n".join(estimate.notes))


if __name__ == "__main__":
    main()
