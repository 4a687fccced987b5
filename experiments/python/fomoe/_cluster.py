"""Sweeps on the workers of a Dask cluster: each task computes one shard of the rows."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from ._fomoe import InputError


def _rows_of(path: str, text: str | None, folder: str, options: Sequence[str], shard: str) -> str:
    """The rows of one shard as JSON. A worker runs this.

    The rows come from a process of their own: a simulation keeps Python's lock, and a worker that does not answer the
    scheduler meanwhile is taken to be lost.
    """
    command = [sys.executable, "-m", "fomoe", "sweep", path, *options, "--shard", shard, "--jobs", "1"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, encoding="utf-8",
                          cwd=folder if os.path.isdir(folder) else None)
    if done.returncode == 0:
        return done.stdout
    if done.returncode == 2:  # wrong input
        raise InputError(done.stderr.strip())
    raise RuntimeError(f"fomoe sweep --shard {shard} failed with status {done.returncode}: {done.stderr.strip()}")


def sweep(client: Any, shards: int | None, path: str, text: str | None, options: Sequence[str]) -> list[str]:
    """The rows of all shards, in their order. Dask computes the shards of a lost worker again on another one."""
    if shards is None:
        threads = sum(client.nthreads().values())
        shards = max(1, 4 * threads)
    if shards < 1:
        raise InputError(f"shards: got {shards}; expected at least 1; for example shards=8")
    futures = [client.submit(_rows_of, path, text, os.getcwd(), list(options), f"{i + 1}/{shards}", pure=False)
               for i in range(shards)]
    try:
        return client.gather(futures)
    finally:
        client.cancel(futures)
