#!/usr/bin/env python3
"""Prints how long a build took: the seconds of its commands by folder, and the ten slowest commands.

    tools/build_time.py                     # reads build/release
    tools/build_time.py build/dev -n 20     # reads another build folder, and prints the 20 slowest commands

The times come from .ninja_log: the wall-clock seconds of each command. They grow when other programs use the cores, and they
are near zero if the compiler cache has the result. For each output file, only its latest command counts.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def commands_of(log):
    """`log`: the lines of .ninja_log. Returns output -> seconds; outputs of one command count once."""
    seconds, seen = {}, {}
    for line in log:
        fields = line.rstrip("\n").split("\t")
        if line.startswith("#") or len(fields) != 5:
            continue
        start, end, _, output, command = fields
        seconds.pop(seen.get(output), None)
        key = (start, end, command)  # a command with several outputs has a line for each
        seen[output] = key
        seconds[key] = (output, (int(end) - int(start)) / 1000)
    return dict(seconds.values())


def folder_of(output, root):
    """The folder of the source that the output was made from: "costmodel/formula"."""
    match = re.search(r"(.*?)CMakeFiles/[^/]+\.dir/(.*)", output)
    if not match:
        return "linking and others"
    source = re.sub(r"\.(o|gch)$", "", match[1] + match[2].replace("__/", ""))
    if "cmake_pch" in source:
        return "precompiled headers"
    folder = source.rsplit("/", 1)[0]
    return folder if (root / folder).is_dir() else folder.split("/")[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default=str(ROOT / "build/release"), help="build folder (default: build/release)")
    parser.add_argument("-n", type=int, default=10, help="number of slowest commands to print (default: 10)")
    options = parser.parse_args()
    log = pathlib.Path(options.build) / ".ninja_log"
    if not log.is_file():
        print(f"{log}: got no such file; expected the log of a build with Ninja; for example tools/build_time.py build/dev", file=sys.stderr)
        return 2
    commands = commands_of(log.read_text().splitlines())
    by_folder = {}
    for output, seconds in commands.items():
        folder = folder_of(output, ROOT)
        count, total = by_folder.get(folder, (0, 0.0))
        by_folder[folder] = (count + 1, total + seconds)
    print(f"{sum(commands.values()):9.1f} s in {len(commands)} commands\n")
    for folder, (count, total) in sorted(by_folder.items(), key=lambda item: -item[1][1]):
        print(f"{total:9.1f} s {count:5}  {folder}")
    print(f"\nthe {options.n} slowest commands")
    for output, seconds in sorted(commands.items(), key=lambda item: -item[1])[:options.n]:
        print(f"{seconds:9.1f} s  {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
