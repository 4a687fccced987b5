"""Starts the processes of a test of fomoe.torch, and makes its scenarios."""

import json
import os
import pathlib
import socket
import subprocess
import sys

SITE = pathlib.Path(__file__).with_name("torch_site.py")


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def run_sites(folder, cases, sites, seconds=240):
    """Runs all cases at `sites` processes, with the variables that torchrun sets; returns their exit statuses and what they printed."""
    (folder / "cases.json").write_text(json.dumps(cases))
    common = {**os.environ, "WORLD_SIZE": str(sites), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
    processes = [subprocess.Popen([sys.executable, str(SITE), str(folder)], env={**common, "RANK": str(rank)}, cwd=folder, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True) for rank in range(sites)]
    texts = []
    try:
        texts = [process.communicate(timeout=seconds)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [process.returncode for process in processes], "\n".join(texts)


def succeed(folder, cases, sites, **more):
    statuses, text = run_sites(folder, cases, sites, **more)
    assert statuses == [0] * sites, text


def scenario(model, steps, sites=3, sequences=2, sequence_length=64, trainer=None, **strategy):
    """A scenario of `steps` steps in which each site trains on `sequences` sequences."""
    return {"model": model, "workload": {"tokens": float(steps * sites * sequences * sequence_length), "global_batch_sequences": sites * sequences},
            "strategy": {"collective": "direct", "payload_dtype": "fp32", **strategy}, "compute": {"step_time": "50ms"},
            "platform": {"sites": sites, "bandwidth": "1Gbps", "latency": "10ms"}, "trainer": trainer or {}}
