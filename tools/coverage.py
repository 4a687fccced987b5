#!/usr/bin/env python3
"""Prints which share of the lines, functions and branches of each folder was reached, from the counters of a build with --coverage.

    coverage.py BUILD      the counters are those of the programs that ran since the build; BUILD/uncovered.txt lists the functions
                           that were never entered

A line of a header counts as reached if it is reached from any source that includes it. Branches to the handling of an exception,
which every call has, are left out.
"""
import collections
import concurrent.futures
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCES = ("platforms", "costmodel", "sim", "experiments", "trainer")


def counters(data):
    """What gcov says of one object: rows (file, lines, functions). Objects that never ran have no counters, and count as not reached."""
    done = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", data.name], cwd=data.parent, capture_output=True,
                          text=True)
    for text in done.stdout.splitlines():
        for file in json.loads(text)["files"]:
            path = pathlib.Path(file["file"])
            if path.is_absolute() and path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in SOURCES:
                yield str(path.relative_to(ROOT)), file["lines"], file["functions"]


class Reached:
    def __init__(self):
        self.lines, self.branches = collections.defaultdict(dict), collections.defaultdict(dict)
        self.functions = collections.defaultdict(dict)

    def add(self, path, lines, functions):
        for line in lines:
            number = line["line_number"]
            self.lines[path][number] = max(self.lines[path].get(number, 0), line["count"])
            taken = [branch["count"] for branch in line["branches"] if not branch["throw"]]
            before = self.branches[path].get(number, [])
            # Instances of a template may have different branches; the longest list stands for the line.
            merged = [max(pair) for pair in zip(taken, before)] if len(taken) == len(before) else max(taken, before, key=len)
            self.branches[path][number] = merged
        for function in functions:
            name = function["start_line"], function["demangled_name"].replace("(anonymous namespace)::", "").split("(")[0]
            self.functions[path][name] = max(self.functions[path].get(name, 0), function["execution_count"])


def share(counts):
    counts = list(counts)
    return f"{100 * sum(count > 0 for count in counts) / len(counts):6.1f} %" if counts else "      – "


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    reached = Reached()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for rows in pool.map(lambda data: list(counters(data)), sorted(build.rglob("*.gcno"))):
            for row in rows:
                reached.add(*row)
    folders = collections.defaultdict(list)
    for path in reached.lines:
        folders[str(pathlib.PurePosixPath(path).parent)].append(path)
        folders[path.split("/")[0] + " (all)"].append(path)
    print("| folder | lines | branches | functions | number of lines |\n|---|---|---|---|---|")
    for folder, paths in sorted(folders.items()):
        lines = [count for path in paths for count in reached.lines[path].values()]
        branches = [count for path in paths for counts in reached.branches[path].values() for count in counts]
        functions = [count for path in paths for count in reached.functions[path].values()]
        print(f"| {folder} | {share(lines)} | {share(branches)} | {share(functions)} | {len(lines)} |")
    never = [f"{path}:{line}: {name}" for path, found in sorted(reached.functions.items()) for (line, name), count in sorted(found.items())
             if count == 0]
    (build / "uncovered.txt").write_text("\n".join(never) + "\n")
    print(f"\n{len(never)} functions were never entered: {build.relative_to(ROOT) if build.is_relative_to(ROOT) else build}/uncovered.txt")


if __name__ == "__main__":
    main()
