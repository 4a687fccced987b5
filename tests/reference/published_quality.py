"""What published runs say of the loss of local-update training: the reference implementation of `[quality] model = "published"`.

A point is 1 % of the loss (nats a token). Intervals hold 80 %: half-widths are one-sided 90 % quantiles of Student's t over studies; a study is a paper,
whatever the number of its rows. The table is experiments/data/published_quality.csv, and its page says what could mislead. Only rows of finished
runs that were compared with their first-hand source are used. The level, in points above tuned data-parallel training of the same model on the same tokens:

    level(N, M, K) = surface(N, M) + slope · x(K) + format + overlap,        x(K) = log2(max(K, 20) / 30)

surface: ratios that Charles et al. measured (arXiv 2503.09799, Tables 4 and 5; K = 30), linear in ln N and in log2 M between measured ones.
No law is evaluated outside the rows. published_quality_left_out.py prints answers, constants, and how well papers that are left out are predicted.
"""

import csv
import dataclasses
import math
import pathlib
import statistics

TABLE = pathlib.Path(__file__).parents[2] / "experiments/data/published_quality.csv"

# One-sided 90 % quantile of Student's t for 1 to 10 degrees of freedom; more degrees use the last. The test derives them by integration.
T90 = [3.0776835372, 1.8856180832, 1.6377443536, 1.5332062741, 1.4758840488, 1.4397557473, 1.4149239277, 1.3968153098, 1.3830287384, 1.3721836411]

SURFACE_PAPER = "Charles et al. 2025"
SURFACE_STEPS, LEAST_STEPS = 30, 20  # K of all runs of the surface; the K whose level is kept below it: two studies reach down to it
LEAST_ROUNDS, MOST_REPLICAS = 20, 8
MOST_STEPS_OF_REPLICAS = 100        # for differences between numbers of replicas
LEVEL_PARAMETERS, CONTRAST_PARAMETERS = (3.4e7, 1e10), (2e7, 3e10)  # active
LEVEL_TOKENS = (15, 340)            # an active parameter: from 2502.12996 (100M) to 2509.10439 (150M)
CONTRAST_TOKENS = (15, 1900)        # to 2311.08105 (150M)
TOLERANCE = 1.01                    # covers rounding to whole steps, and norms that are counted or not
METHODS = ("diloco", "streaming_diloco", "eager_diloco")
TUNED = ("yes", "extrapolated")

RATIO_ROW, RATIO_LOSS = "diloco-150M-K1000-vs-K50", "diloco-150M-M8-noniid"  # a ratio of perplexities, and the run whose loss it is a ratio of
FEW_ROUNDS_ROW, REPLICAS_ROW = "forgather-34M-1x-M2-K500", "distrain-162M-M8-K500"
FORMAT_ROWS = ("forgather-lowprec-bf16-down", "forgather-lowprec-bf16-down-stochastic-rounding", "forgather-lowprec-bf16-up-stochastic-rounding")
STREAMING_ROWS = ("eager-t2-1-inner-step", "eager-t2-no-overlap")
EAGER_ROWS = ("eager-t2-1-outer-step-eager", "eager-t2-no-overlap")
FEW_BITS_ROWS = ("osirus-3M-T5000-K100-diloco-int8", "osirus-3M-T5000-K100-diloco")
FEW_BITS_HALF = 0.3   # of 4 to 15 bits: a claim of several papers; one pair of rows, of 3.3M parameters and 8 bits, has +0.16
STREAMING_HALF = 0.3  # of fragments that are a few steps under way: one pair of rows, rounded to 0.37 points

# L(N, D) = E + A / N^alpha + B / D^beta in nats a token, as (E, A, alpha, B, beta); N in parameters, D in tokens.
LAWS = {
    "Hoffmann et al. 2022": (1.69, 406.4, 0.34, 410.7, 0.28),               # arXiv 2203.15556, as rounded in its text
    "Besiroglu et al. 2024": (1.8172, 482.01, 0.3478, 2085.43, 0.3658),     # arXiv 2404.10102: the same runs, fitted anew
}


@dataclasses.dataclass(frozen=True)
class Setting:
    """What is trained, and how. `parameters` are those that a token uses; `tokens` those of all replicas; `steps` those of one replica."""
    parameters: float
    tokens: float
    replicas: int
    local_steps: int
    steps: float
    method: str = "diloco"        # "ddp", or one of METHODS; diloco has an outer Nesterov step
    architecture: str = "dense"   # or "mixture"
    mixtures: str = "note"        # or "refuse": what to do with a mixture
    inner_optimizer: str = "adamw"
    wire_bits: float = 16         # of a value that is sent up
    density: float = 1            # share of the values that are sent
    expert_overlap: int = 0       # O_e; 0 and M: every site holds every expert
    same_data: bool = True        # all sites draw from one distribution

    @property
    def rounds(self):
        rounds = self.steps / self.local_steps   # the last may come after fewer steps
        return rounds if math.isinf(rounds) else math.ceil(rounds)


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Points, half-width of the 80 % interval, ids of the rows, number of studies; `reasons` say why nothing is said."""
    points: float = 0.0
    half: float = 0.0
    rows: tuple = ()
    studies: int = 0
    reasons: tuple = ()
    notes: tuple = ()

    @property
    def equal(self):
        """Whether a difference is "=": 0 lies inside its interval."""
        return abs(self.points) <= self.half

    @property
    def probability_above_0(self):
        degrees = self.studies - 1 if self.studies > 1 else len(T90)
        return student_cdf(self.points / (self.half / quantile(degrees)), degrees)


def read(path=TABLE):
    with open(path, newline="") as file:
        return list(csv.DictReader(file, strict=True))


def nats(row, column="value"):
    """The loss of a cell, or None. Bits a byte become nats a byte: only ratios are used."""
    if not row[column] or row["metric"] not in ("loss", "perplexity", "bits_per_byte"):
        return None
    value = float(row[column])
    return {"loss": value, "perplexity": math.log(value), "bits_per_byte": value * math.log(2)}[row["metric"]]


def points(value, baseline):
    return 100 * (value / baseline - 1)


def usable(row):
    return row["hand"] == "first" and row["checked"] == "yes" and row["outcome"] == "finished"


def number(row, column, missing=math.inf):
    return float(row[column]) if row[column] else missing


def quantile(degrees):
    return T90[min(degrees, len(T90)) - 1]


def student_cdf(t, degrees):
    """P(T ≤ t) for whole degrees of freedom, by the finite sums of Abramowitz and Stegun 26.7.3 and 26.7.4."""
    theta = math.atan(t / math.sqrt(degrees))
    odd = degrees % 2
    term, total = math.cos(theta) if odd else 1.0, 0.0
    for k in range(1, degrees // 2 + 1):
        total += term
        term *= (2 * k / (2 * k + 1) if odd else (2 * k - 1) / (2 * k)) * math.cos(theta) ** 2
    return 0.5 + ((theta + math.sin(theta) * total) / math.pi if odd else 0.5 * math.sin(theta) * total)


def x_of(local_steps):
    """Doublings of K above that of the surface."""
    return math.log2(max(local_steps, LEAST_STEPS) / SURFACE_STEPS)


def slope_of(xs, ys):
    """Least squares."""
    x, y = statistics.fmean(xs), statistics.fmean(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)


def between(entries, x):
    """(y, ids) at x of entries (x, y, id) by rising x: linear between them, constant outside."""
    if x <= entries[0][0]:
        return entries[0][1], (entries[0][2],)
    for (x0, y0, id0), (x1, y1, id1) in zip(entries, entries[1:]):
        if x < x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0), (id0, id1) if x > x0 else (id0,)
    return entries[-1][1], (entries[-1][2],)


def tokens_factor(parameters, tokens, percent, law):
    """Factor of tokens that makes up for `percent` points of loss with one law; None if no number of tokens does.

    The method's loss on D tokens is (1 + p) L(N, D), with the same p for every D. From (1 + p) L(N, r D) = L(N, D) follows
    r = (1 - L / (B / D^beta) · p / (1 + p))^(-1 / beta).
    """
    e, a, alpha, b, beta = LAWS[law]
    data = b / tokens ** beta
    loss = e + a / parameters ** alpha + data
    share = percent / 100
    left = 1 - loss / data * share / (1 + share)
    return left ** (-1 / beta) if left > 0 else None


def factors(setting, estimate):
    """{law: factor of tokens at the lower end, the centre and the upper end of a level}"""
    ends = (estimate.points - estimate.half, estimate.points, estimate.points + estimate.half)
    return {law: tuple(tokens_factor(setting.parameters, setting.tokens, end, law) for end in ends) for law in LAWS}


def half_of(errors):
    """Half-width of the 80 % interval from {study: (root mean square error, ids)}. The mean error counts as 0: as many degrees of freedom as studies."""
    return quantile(len(errors)) * math.sqrt(statistics.fmean(error ** 2 for error, _ in errors.values())) if errors else math.inf


def by_paper(errors):
    """{paper: (root mean square, ids)} of {paper: [(error, id), ...]}"""
    return {paper: (math.sqrt(statistics.fmean(e * e for e, _ in found)), tuple(sorted(id for _, id in found))) for paper, found in errors.items()}


class Model:
    """The published rows, and what follows from them. `without`: papers that are left out, to check the model."""

    def __init__(self, rows=None, without=()):
        self.rows = [row for row in (read() if rows is None else rows) if usable(row) and row["paper"] not in without]
        self.by_id = {row["id"]: row for row in self.rows}
        self.diloco = [row for row in self.rows if row["family"] == "nesterov" and nats(row)]
        self.columns = {}  # {M: [(ln N, points, id), ...]}, of the runs in the main tables of the surface's paper
        for row in self.diloco:
            if row["paper"] == SURFACE_PAPER and not row["id"].endswith("-independent"):
                entry = math.log(number(row, "parameters_active")), points(nats(row), nats(row, "baseline_value")), row["id"]
                self.columns.setdefault(int(row["replicas"]), []).append(entry)
        for entries in self.columns.values():
            entries.sort()
        self.slopes = self._slopes()
        values = [slope for slope, _ in self.slopes.values()]
        self.slope = statistics.fmean(values) if values else math.nan
        # Of a study that is not among these: its own deviation, and that of the mean.
        self.slope_half = quantile(len(values) - 1) * statistics.stdev(values) * math.sqrt(1 + 1 / len(values)) if len(values) > 1 else math.inf
        self.run_sd = self._run_sd()
        self.level_errors = by_paper(self._level_errors())
        self.replica_errors = by_paper(self._replica_errors())
        self.level_half, self.replica_half = half_of(self.level_errors), half_of(self.replica_errors)

    def _column(self, replicas, log_n):
        value, ids = between(self.columns[replicas], log_n)
        last = self.columns[replicas][-1]
        if replicas == 8 and log_n > last[0]:
            # M = 8 was measured up to 2.4e9. What 8 replicas cost more than 4 there is kept beyond; it fell with every size.
            four, more = self._column(4, log_n)
            value, ids = value + four - self._column(4, last[0])[0], more + ids
        return value, ids

    def surface(self, parameters, replicas):
        """(points above data-parallel training at K = 30, ids)"""
        log_n, log_m = math.log(parameters), math.log2(replicas)
        low = min(int(log_m), 2)
        (below, ids), (above, more) = self._column(2 ** low, log_n), self._column(2 ** (low + 1), log_n)
        share = log_m - low
        return below + share * (above - below), (ids if share < 1 else ()) + (more if share > 0 else ())

    def groups(self, *columns):
        """Groups of runs of DiLoCo that differ in `columns` alone, the first among them, within the limits of differences."""
        keys = ["paper", "method", "parameters_active", "tokens", "replicas", "local_steps", "outer_optimizer", "outer_learning_rate", "wire_bits", "density",
                "overlap_steps", "data", "same_data", "batch_rule", "baseline_kind", "steps", "rounds", "metric"]
        groups = {}
        for row in self.diloco:
            size = number(row, "parameters_active")
            if not row["id"].endswith("-independent") and size >= CONTRAST_PARAMETERS[0] and 2 <= int(row["replicas"]) <= MOST_REPLICAS and \
               int(row["local_steps"]) >= LEAST_STEPS and number(row, "rounds") >= LEAST_ROUNDS and number(row, "tokens") / size >= CONTRAST_TOKENS[0]:
                groups.setdefault(tuple(row[key] for key in keys if key not in columns), []).append(row)
        return [group for group in groups.values() if len({row[columns[0]] for row in group}) > 1]

    def _slopes(self):
        """{paper: (points a doubling of K, ids)}: least squares in each group of runs, and the mean over a paper's groups."""
        found = {}
        for group in self.groups("local_steps", "rounds"):
            base = nats(group[0], "baseline_value") or nats(group[0])
            slope = slope_of([x_of(int(row["local_steps"])) for row in group], [points(nats(row), base) for row in group])
            found.setdefault(group[0]["paper"], []).append((slope, [row["id"] for row in group]))
        if RATIO_ROW in self.by_id:
            row = self.by_id[RATIO_ROW]
            rise = 100 * math.log(float(row["value"])) / nats(self.by_id[RATIO_LOSS])
            doublings = x_of(int(row["local_steps"])) - x_of(int(row["baseline_kind"].removeprefix("diloco_K")))
            found.setdefault(row["paper"], []).append((rise / doublings, [RATIO_ROW]))
        return {paper: (statistics.fmean(slope for slope, _ in groups), tuple(id for _, ids in groups for id in ids)) for paper, groups in found.items()}

    def _run_sd(self):
        """Standard deviation of one run in points: Charles et al. trained six runs twice, with two extrapolations of the hyperparameters."""
        pairs = [(row, self.by_id[row["id"].removesuffix("-independent")]) for row in self.diloco if row["id"].endswith("-independent")]
        return math.sqrt(statistics.fmean(points(nats(a), nats(b)) ** 2 for a, b in pairs) / 2) if pairs else math.nan

    def left_out(self):
        """{M: {ln N: (surface without this size − published, id)}} of the sizes that have neighbours on both sides"""
        return {m: {x: (y0 + (y1 - y0) * (x - x0) / (x1 - x0) - y, id) for (x0, y0, _), (x, y, id), (x1, y1, _) in zip(e, e[1:], e[2:])}
                for m, e in self.columns.items()}

    def _level_errors(self):
        """{paper: [(surface − published, id), ...]} where the data-parallel baseline was tuned and K is within a factor of 2 of 30"""
        errors = {SURFACE_PAPER: [error for column in self.left_out().values() for error in column.values()]} if self.columns else {}
        for row in self.diloco if self.columns else []:
            if row["baseline_tuned"] in TUNED and row["baseline_kind"] == "data_parallel" and int(row["replicas"]) <= MOST_REPLICAS and \
               abs(x_of(int(row["local_steps"]))) <= 1 and (row["paper"] != SURFACE_PAPER or row["id"].endswith("-independent")):
                expected = self.surface(number(row, "parameters_active"), int(row["replicas"]))[0]
                errors.setdefault(row["paper"], []).append((expected - points(nats(row), nats(row, "baseline_value")), row["id"]))
        return errors

    def _replica_errors(self):
        """{paper: [(error, id of the larger M), ...]} of differences between numbers of replicas from 2 to 8, for the same stated tokens"""
        errors, left_out = {}, self.left_out()
        for low, high in [(2, 4), (2, 8), (4, 8)] if left_out else []:
            for x in [x for x in left_out[low] if x in left_out[high]]:
                errors.setdefault(SURFACE_PAPER, []).append((left_out[high][x][0] - left_out[low][x][0], left_out[high][x][1]))
        for group in [group for group in self.groups("replicas") if left_out and group[0]["tokens"] and
                      int(group[0]["local_steps"]) <= MOST_STEPS_OF_REPLICAS]:
            base = nats(group[0], "baseline_value") or nats(group[0])
            group.sort(key=lambda row: int(row["replicas"]))
            for i, a in enumerate(group):
                for b in [b for b in group[i + 1:] if b["replicas"] != a["replicas"]]:
                    expected = [self.surface(number(row, "parameters_active"), int(row["replicas"]))[0] for row in (a, b)]
                    errors.setdefault(a["paper"], []).append((expected[1] - expected[0] - points(nats(b), base) + points(nats(a), base), b["id"]))
        return errors

    def eager_term(self, parameters):
        """(points, half-width, ids) of an eager update that is under way for a whole round. One study (arXiv 2502.12996) has two estimates at 5e8 parameters.

        Centre: Table 6 (M = 2, K = 30) minus the surface, linear in ln N. Half-width: Student's t over the two estimates, Table 6 minus the surface and
        Table 2, eager minus no overlap.
        """
        entries = sorted((math.log(number(row, "parameters_active")), points(nats(row), nats(row, "baseline_value")) -
                          self.surface(number(row, "parameters_active"), 2)[0], row["id"])
                         for row in self.rows if row["id"].startswith("eager-") and row["id"].endswith("M-K30"))
        eager, waiting = (nats(self.by_id[id]) for id in EAGER_ROWS)
        both = [between(entries, math.log(5e8))[0], points(eager, waiting)]
        value, ids = between(entries, math.log(parameters))
        return value, quantile(1) * statistics.stdev(both) * math.sqrt(1 + 1 / 2), ids + EAGER_ROWS

    def terms(self, s):
        """(points of all terms together, ids, half-widths of format and overlap)"""
        value, ids = self.surface(s.parameters, s.replicas)
        value += self.slope * x_of(s.local_steps)
        wire, overlap = (0.0, FORMAT_ROWS) if s.wire_bits >= 16 else (FEW_BITS_HALF, FEW_BITS_ROWS), (0.0, 0.0, ())
        if s.method == "streaming_diloco":
            overlap = 0.0, STREAMING_HALF, STREAMING_ROWS
        elif s.method == "eager_diloco":
            overlap = self.eager_term(s.parameters)
        return value + overlap[0], ids + wire[1] + overlap[2], (wire[0], overlap[1])

    def most_steps(self, parameters):
        """(largest K of a run of DiLoCo with at least 20 rounds and half the active parameters or more, id)"""
        rows = [row for row in self.rows if row["family"] == "nesterov" and 2 * number(row, "parameters_active") >= parameters and
                number(row, "rounds") >= LEAST_ROUNDS]
        best = max(rows, key=lambda row: int(row["local_steps"]), default=None)  # the first of equal ones
        return (int(best["local_steps"]), best["id"]) if best else (0, "none")

    def refusals(self, s, level):
        """Sentences that say why nothing is said of a setting, each with its limit."""
        if s.method == "ddp":
            return ()
        what, sizes, budgets = ("the level", LEVEL_PARAMETERS, LEVEL_TOKENS) if level else ("a difference", CONTRAST_PARAMETERS, CONTRAST_TOKENS)
        ratio, (steps, row) = s.tokens / s.parameters, self.most_steps(s.parameters)
        cases = [
            (s.method not in METHODS, f"method {s.method}; the rows cover ddp, {', '.join(METHODS)}"),
            (s.architecture == "mixture" and s.mixtures == "refuse", "a mixture of experts; the rows are of dense models"),
            (s.inner_optimizer != "adamw", f"inner optimizer {s.inner_optimizer}; the rows have adamw"),
            (s.expert_overlap not in (0, s.replicas), f"{s.expert_overlap} of {s.replicas} sites hold an expert; in the rows all sites hold the whole model"),
            (not s.same_data, "sites with different data; the rows are of sites that draw from one distribution"),
            (s.wire_bits < 4, f"{s.wire_bits:.6g} bits on the wire; at least 4 are covered"),
            (s.density < 1, f"a share of {s.density:.6g} of the values on the wire; only all of them are covered"),
            (s.replicas > MOST_REPLICAS, f"{s.replicas} replicas; at most {MOST_REPLICAS} are covered"),
            (not sizes[0] / TOLERANCE <= s.parameters <= sizes[1] * TOLERANCE,
             f"{s.parameters:.6g} active parameters; {what} is covered from {sizes[0]:.6g} to {sizes[1]:.6g}"),
            (not budgets[0] / TOLERANCE <= ratio <= budgets[1] * TOLERANCE,
             f"{ratio:.6g} tokens per active parameter; {what} is covered from {budgets[0]} to {budgets[1]}"),
            (s.rounds < LEAST_ROUNDS, f"{s.rounds:.6g} rounds; at least {LEAST_ROUNDS} are covered (16 rounds cost +6.2 % in {FEW_ROUNDS_ROW})"),
            (0 < steps < s.local_steps, f"local_steps {s.local_steps}; runs of at least half this size reach {steps} ({row})"),
        ]
        return tuple(sentence for holds, sentence in cases if holds)

    @staticmethod
    def notes(s):
        cases = [
            (s.architecture == "mixture", "the rows are of dense models, taken at equal active parameters"),
            (s.parameters > LEVEL_PARAMETERS[1] * TOLERANCE, "the surface of 1e+10 active parameters is kept above this size"),
            (s.replicas > 4 and s.parameters > 2.4e9, "8 replicas were measured up to 2.4e+09 active parameters; what they cost more than 4 there is kept"),
            (s.tokens / s.parameters > 60, f"{int(s.tokens / s.parameters + 0.5)} tokens per active parameter, where the surface has 20; the loss is kept, and what it costs "
                                           "in tokens is much less certain"),
            (s.local_steps < LEAST_STEPS, f"the level of K = {LEAST_STEPS} is kept below it"),
        ]
        return tuple(sentence for holds, sentence in cases if holds)

    def _slope_rows(self, x):
        return tuple(id for _, ids in self.slopes.values() for id in ids) if x else ()

    def level(self, s):
        """Loss above tuned data-parallel training of the same model on the same tokens."""
        if reasons := self.refusals(s, True):
            return Estimate(reasons=reasons)
        if s.method == "ddp":
            return Estimate()
        x, (value, ids, halves) = x_of(s.local_steps), self.terms(s)
        half = math.hypot(self.level_half, self.slope_half * x, *halves)
        return Estimate(value, half, ids + self._slope_rows(x), len(self.slopes) if x else len(self.level_errors), (), self.notes(s))

    def contrast(self, a, b):
        """Loss of b above that of a, for the same model and tokens: the level cancels. If one of them is ddp, it is the level of the other."""
        def alike(one, other):
            return one / TOLERANCE <= other <= one * TOLERANCE
        if alike(a.tokens, b.tokens) and not alike(a.steps, b.steps):
            return Estimate(reasons=("two batches; a difference is covered for the same number of tokens in each step",))
        if "ddp" in (a.method, b.method):
            estimate = self.level(a if b.method == "ddp" else b)
            return dataclasses.replace(estimate, points=-estimate.points) if b.method == "ddp" else estimate
        reasons = self.refusals(a, False) + self.refusals(b, False)
        if not (alike(a.parameters, b.parameters) and alike(a.tokens, b.tokens)):
            reasons += ("two models or numbers of tokens; a difference is covered for the same model and tokens",)
        if a.replicas != b.replicas and max(a.local_steps, b.local_steps) > MOST_STEPS_OF_REPLICAS:
            reasons += (f"other numbers of replicas at local_steps {max(a.local_steps, b.local_steps)}; covered up to {MOST_STEPS_OF_REPLICAS} "
                        f"(at 500, 8 replicas cost more than the rows at 30 say: {REPLICAS_ROW})",)
        if reasons:
            return Estimate(reasons=tuple(dict.fromkeys(reasons)))
        if a == b:
            return Estimate()
        (first, ids, halves), (second, more, others) = self.terms(a), self.terms(b)
        x = x_of(b.local_steps) - x_of(a.local_steps)
        # A term that both have cancels.
        changed = [half for one, two in zip(halves, others) if one != two for half in (one, two)]
        noise = quantile(len(T90)) * math.sqrt(2) * self.run_sd
        half = math.hypot(noise, self.slope_half * x, self.replica_half if a.replicas != b.replicas else 0.0, *changed)
        rows, notes = tuple(dict.fromkeys(ids + more + self._slope_rows(x))), tuple(dict.fromkeys(self.notes(a) + self.notes(b)))
        return Estimate(second - first, half, rows, len(self.slopes) if x else len(self.replica_errors) if a.replicas != b.replicas else 0, (), notes)

    def nearest(self, s, count=4):
        """Ids of the runs of DiLoCo against data-parallel training that are closest, by doublings of N, M and K together; ties in the table's order."""
        def distance(row):
            pairs = [(number(row, "parameters_active"), s.parameters), (int(row["replicas"]), s.replicas), (int(row["local_steps"]), s.local_steps)]
            return sum(abs(math.log2(a / b)) for a, b in pairs)
        runs = [row for row in self.diloco if row["baseline_kind"] == "data_parallel" and number(row, "rounds") >= LEAST_ROUNDS and
                not row["id"].endswith("-independent")]
        return [row["id"] for row in sorted(runs, key=distance)[:count]]
