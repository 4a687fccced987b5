"""Times the steps of a user's own training loop and writes a step profile (schema fomoe.step-profile/1, experiments/files/step_profile_io.hpp),
which a scenario names with compute.profile."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import inspect
import json
import operator
import os
import pathlib
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from .. import InputError
from .._files import check_output, write_whole
from ._report import device_name, peak_memory_bytes
from ._shape import shape

FEWEST_STEPS = 3
_PARTS = ("forward_s", "backward_s", "optimizer_s")
_DTYPES = {torch.float32: "fp32", torch.bfloat16: "bf16"}


@dataclasses.dataclass
class Measured:
    """One point of a profile. median_s: of whole steps. spread: interquartile range ÷ median."""

    local_experts: int
    sequences: int
    median_s: float
    spread: float
    samples: list[dict[str, float]]


class _Clock:
    """Marks times between the parts of a step: on a GPU with events on its stream, otherwise by wall clock."""

    def __init__(self, device: torch.device) -> None:
        self.cuda, self.marks = device.type == "cuda", []

    def mark(self) -> None:
        if self.cuda:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self.marks.append(event)
        else:
            self.marks.append(time.perf_counter())

    def seconds(self) -> list[float]:
        if self.cuda:
            self.marks[-1].synchronize()
            return [1e-3 * a.elapsed_time(b) for a, b in zip(self.marks, self.marks[1:])]
        return [b - a for a, b in zip(self.marks, self.marks[1:])]


def _begun(step: Callable[[], Any], device: torch.device) -> _Clock:
    clock = _Clock(device)
    clock.mark()
    parts = step()
    if inspect.isgenerator(parts):
        for _ in parts:
            clock.mark()
    clock.mark()
    return clock


def _timed(step: Callable[[], Any], device: torch.device) -> Iterator[list[float]]:
    """Seconds of the parts of successive steps: one part, or three if the step is a generator that yields twice. On a GPU the next step is
    queued before a step is waited for: otherwise the GPU would wait while the host launches a step's first work."""
    clocks: collections.deque[_Clock] = collections.deque()
    while True:
        while len(clocks) < (2 if device.type == "cuda" else 1):
            clocks.append(_begun(step, device))
        seconds = clocks.popleft().seconds()
        if len(seconds) not in (1, 3):
            raise InputError(f"step: got a step that yields {len(seconds) - 1} times; expected none, or two: after the forward and after the backward pass; "
                             "for example loss = loss_of(batch); yield; loss.backward(); yield; optimizer.step()")
        yield seconds


def _thread_seconds() -> tuple[float, float]:
    """CPU time of all threads of the process, and the time that they waited for a core; (0, 0) if the system does not say."""
    running = waiting = 0
    for path in pathlib.Path("/proc/self/task").glob("*/schedstat"):
        try:
            numbers = path.read_text().split()
        except OSError:  # the thread has ended
            continue
        running, waiting = running + int(numbers[0]), waiting + int(numbers[1])
    return 1e-9 * running, 1e-9 * waiting


def _beyond_fastest(samples: list[list[float]]) -> float:
    """Share of the time of all steps beyond that of their fastest tenth: other programs had the GPU (costmodel/inputs/step_profile.hpp)."""
    steps = sorted(sum(sample) for sample in samples)
    return max(0.0, 1 - steps[(len(steps) - 1) // 10] * len(steps) / sum(steps)) if sum(steps) > 0 else 0.0


def _point(step: Callable[[], Any], device: torch.device, warmup: int, repeats: int, time_budget_s: float) -> tuple[dict[str, Any], list[list[float]]]:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
    steps = _timed(step, device)
    for _ in range(warmup):
        next(steps)
    begin, (running, waiting) = time.perf_counter(), _thread_seconds()
    samples: list[list[float]] = []
    while len(samples) < repeats and (len(samples) < FEWEST_STEPS or time.perf_counter() - begin < time_budget_s):
        samples.append(next(steps))
    elapsed = (time.perf_counter() - begin) * torch.get_num_threads()
    now = _thread_seconds()
    point: dict[str, Any] = {"peak_memory_bytes": int(peak_memory_bytes(device))}
    if device.type == "cpu" and now != (0.0, 0.0):
        point.update(cpu_share=max(0.0, now[0] - running) / elapsed, waited_share=max(0.0, now[1] - waiting) / elapsed)
    if device.type == "cuda":
        point["device_waited_share"] = _beyond_fastest(samples)
    return point, samples


def _count(value: Any, what: str, least: int, most: int | None = None) -> int:
    """A whole number, also one of NumPy or PyTorch."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < least or (most is not None and number > most):
        raise InputError(f"{what}: got {value!r}; expected a whole number of at least {least}{'' if most is None else f' and at most {most}'}; for example "
                         f"{what}={least if most is None else most}")
    return number


def _model_json(model: Any, sequence_length: int, experts: str | Iterable[str] | None, active_experts: int | None) -> dict[str, Any]:
    if isinstance(model, torch.nn.Module):
        document: Mapping[str, Any] = shape(model, experts=experts, active_experts=active_experts)
    elif experts is not None or active_experts is not None:
        raise InputError("experts, active_experts: got them beside the shape of a model, which has them; expected them with a module only; for example "
                         "model=model")
    elif isinstance(model, Mapping):
        document = model
    else:
        try:
            document = json.loads(pathlib.Path(model).read_text())
        except (OSError, ValueError) as error:
            raise InputError(f'model: got {model}, which cannot be read ({error}); expected a module, or the file or the dict of fomoe.torch.shape(); for '
                             'example model="shape.json"') from error
    return {**document.get("model", document), "sequence_length": sequence_length}


def profile(step: Callable[..., Any], path: str | os.PathLike, *, model: Any, sequences: int, sequence_length: int,
            experts: str | Iterable[str] | None = None, active_experts: int | None = None, local_experts: Iterable[int] | None = None,
            skip_token: bool = False, device: str | torch.device | None = None, dtype: str | None = None,
            warmup: int = 3, repeats: int = 20, time_budget_s: float = 60.0) -> list[Measured]:
    """Times `step` on this device and writes the step profile `path`; returns median and spread of each point.

    step: makes one training step of `sequences` sequences of `sequence_length` tokens: forward, backward, optimiser. If it is a generator
    that yields after the forward and after the backward pass, the three parts are timed; otherwise a third of a step counts as forward and
    the rest as backward. local_experts: numbers of experts that a site holds in each layer; `step` is then a function that takes such a
    number and returns the step of a model with so many experts. model: the shape of the whole model: a module, the file or the dict of
    fomoe.torch.shape(). experts, active_experts: of a module, as in fomoe.torch.shape(). device: where the step runs (default: cuda if the model is a module there, otherwise cpu); on cuda the times are
    those of the GPU. dtype: of the matrix products, fp32 or bf16 (default: that of the module's parameters). Raises InputError.
    """
    check_output("path", path, [model] if isinstance(model, (str, os.PathLike)) else [])
    first = next(model.parameters()) if isinstance(model, torch.nn.Module) else None
    at = torch.device(device) if device is not None else first.device if first is not None else torch.device("cpu")
    kind = dtype if dtype is not None else _DTYPES.get(first.dtype) if first is not None else None
    if kind not in ("fp32", "bf16"):
        raise InputError(f"dtype: got {kind}; expected fp32 or bf16, the type of the matrix products; for example dtype=\"bf16\"")
    if at.type not in ("cpu", "cuda"):
        raise InputError(f"device: got {at}; expected cpu or cuda; for example device=\"cuda\"")
    if repeats < FEWEST_STEPS or warmup < 0:
        raise InputError(f"repeats: got {repeats} after {warmup} steps of warm-up; expected at least {FEWEST_STEPS}; for example repeats=20")
    sequences, sequence_length = _count(sequences, "sequences", 1), _count(sequence_length, "sequence_length", 1)
    described = _model_json(model, sequence_length, experts, active_experts)
    all_experts = described.get("experts", 0)
    all_held = [all_experts] if local_experts is None else [_count(held, "local_experts", 0, all_experts) for held in local_experts]
    if not all_held:
        raise InputError(f"local_experts: got an empty list; expected numbers of experts that a site may hold; for example local_experts=[{all_experts}]")
    points, measured, whole = [], [], True
    for held in all_held:
        point, samples = _point(step if local_experts is None else step(held), at, warmup, repeats, time_budget_s)
        whole = whole and len(samples[0]) == 1
        # The convention of profiles of whole steps (costmodel/inputs/step_profile.hpp).
        parts = [[seconds[0] / 3, seconds[0] * 2 / 3, 0.0] if len(seconds) == 1 else seconds for seconds in samples]
        points.append({"micro_batch_sequences": sequences, "local_experts": held, "skip_token": skip_token, **point,
                       "samples": [dict(zip(_PARTS, seconds)) for seconds in parts]})
        times = sorted(sum(seconds) for seconds in samples)
        quarter = len(times) // 4
        median = statistics.median(times)
        measured.append(Measured(held, sequences, median, (times[-1 - quarter] - times[quarter]) / median, points[-1]["samples"]))
    cuda = f", CUDA runtime {torch.version.cuda}" if at.type == "cuda" else ""
    document = {"schema": "fomoe.step-profile/1", "model": described, "device_kind": at.type, "device_name": device_name(at),
                "threads": torch.get_num_threads(), "dtype": kind, "versions": f"PyTorch {torch.__version__}{cuda}",
                "measured_at": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "source": "fomoe.torch.profile",
                "origin": {"kind": "fomoe.torch", "file": "", "sha256": "", "lines": "", "warmup_dropped": warmup, "gpus": 1, "whole_steps": whole,
                           "composed": "", "scaled": ""},
                "points": points}
    write_whole(path, json.dumps(document, indent=1) + "\n")
    return measured
