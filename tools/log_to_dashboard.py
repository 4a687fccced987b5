#!/usr/bin/env python3
"""Sends the log of `fomoe-train run --log` to TensorBoard or Weights & Biases, after a run or while it is under way.

    pip install tensorboard torch
    tools/log_to_dashboard.py steps.jsonl steps.rank-1.jsonl --tensorboard runs/first --follow
    tools/log_to_dashboard.py steps.jsonl --wandb fomoe                          # WANDB_MODE=offline keeps it on this machine

Curves of a site are called SITE/loss, SITE/gradient_norm, SITE/update_norm, SITE/learning_rate, SITE/step_s, SITE/router_entropy, SITE/load_cv and
SITE/ghost_share (means over the layers), SITE/exposed_s (of transfers), SITE/outer_difference_norm and
SITE/outer_update_norm (of outer steps) and SITE/validation_loss. The site "all" is the whole
model.
"""

import argparse
import json
import os
import statistics
import time


def scalars(line):
    """The curves of one line of the log, by name, and the step or the round that they belong to."""
    site = line["site"]
    if line["kind"] == "step":
        values = {key: line[key] for key in ("loss", "gradient_norm", "update_norm", "learning_rate", "step_s") if line.get(key) is not None}
        for name, key in (("router_entropy", "entropy"), ("load_cv", "load_cv"), ("ghost_share", "ghost_share")):
            if line["routing"]:
                values[name] = statistics.mean(layer[key] for layer in line["routing"])
        return line["step"], {f"{site}/{name}": value for name, value in values.items()}
    if line["kind"] == "transfer":
        return line["round"], {f"{site}/exposed_s/{line['operation']}": line["exposed_s"]}
    if line["kind"] == "outer_step":
        values = {"outer_difference_norm": line["difference_norm"], "outer_update_norm": line["update_norm"]}
        return line["round"], {f"{site}/{name}": value for name, value in values.items() if value is not None}
    if line["kind"] == "validation":
        return line["round"], {f"{site}/validation_loss": line["loss"]}
    return 0, {}


def lines_of(path, follow):
    """Whole lines of a file; with `follow`, also those that are written later. None: nothing new yet."""
    with open(path, encoding="utf-8") as file:
        rest = ""
        while True:
            text = file.readline()
            rest += text
            if rest.endswith("\n"):
                yield json.loads(rest)
                rest = ""
            elif not text:
                if not follow:
                    return
                yield None


def tensorboard(folder):
    from torch.utils.tensorboard import SummaryWriter  # pylint: disable=import-outside-toplevel

    writer = SummaryWriter(folder)

    def send(step, values):
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    return send, writer.flush


def wandb(project):
    import wandb as library  # pylint: disable=import-outside-toplevel

    run = library.init(project=project)
    return lambda step, values: run.log({**values, "step": step}), lambda: None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="+", metavar="LOG.jsonl", help="a file for each site")
    parser.add_argument("--tensorboard", metavar="DIR", help="write event files to this folder")
    parser.add_argument("--wandb", metavar="PROJECT", help="log to this project")
    parser.add_argument("--follow", action="store_true", help="go on until interrupted")
    given = parser.parse_args()
    if (given.tensorboard is None) == (given.wandb is None):
        parser.error("expected --tensorboard DIR or --wandb PROJECT")
    for path in given.logs:
        if not os.path.exists(path):
            parser.error(f"{path}: no such file")
    send, flush = tensorboard(given.tensorboard) if given.tensorboard else wandb(given.wandb)
    readers = [lines_of(path, given.follow) for path in given.logs]
    while readers:
        idle = True
        for reader in list(readers):
            for line in reader:
                if line is None:
                    break
                idle = False
                send(*scalars(line))
            else:
                readers.remove(reader)
        flush()
        if idle and readers:
            time.sleep(1)


if __name__ == "__main__":
    main()
