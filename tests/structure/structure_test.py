#!/usr/bin/env python3
"""Checks the structure of the repository: source folders include each other in one direction only (levels.txt), and source and
test folders stay small enough to read. Few functions of costmodel read a whole scenario.

    structure_test.py          prints each include that points upwards and each folder that is too large; exit status 1 if any

Test folders have no levels: a test may include any folder. All files of a test folder count, also data and scripts.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_FILES = 24  # in a folder: "about twenty"
MOST_LINES = 400  # in a file
# Functions of costmodel's headers that read a scenario for themselves. What a scenario means is resolved once (costmodel/formula/resolved.hpp),
# and others take the parts that they need: this number may only fall.
MOST_OF_SCENARIO = 112
SOURCES = (".hpp", ".cpp", ".cu", ".cuh")
# Programs: each links folders of every level.
PROGRAMS = {"experiments/main.cpp", "experiments/python/module.cpp", "trainer/commands/main.cpp"}


def read_levels(text):
    names = [line.split("#")[0].strip() for line in text.splitlines()]
    return {name: level for level, name in enumerate(name for name in names if name)}


def problems_of(files, levels):
    """`files`: path -> text, both relative to the root of the repository."""
    problems = []
    counts, lines = {}, {}
    for path, text in files.items():
        folder = str(pathlib.PurePosixPath(path).parent)
        counts[folder] = counts.get(folder, 0) + 1
        lines[path] = text.count("\n")
        if path in PROGRAMS or path.startswith("tests/"):
            continue
        if folder not in levels:
            problems.append(f"{path}: its folder is not in levels.txt")
            continue
        for number, line in enumerate(text.splitlines(), 1):
            found = re.match(r'\s*#include "([^"]+)"', line)
            if not found:
                continue
            included = str(pathlib.PurePosixPath(found[1]).parent)
            if included not in levels:
                problems.append(f'{path}:{number}: includes "{found[1]}", whose folder is not in levels.txt')
            elif levels[included] > levels[folder]:
                problems.append(f'{path}:{number}: includes "{found[1]}" of a higher level')
    of_scenario = sum(text.count("const Scenario&") for path, text in files.items()
                      if path.startswith("costmodel/") and path.endswith(".hpp"))
    if of_scenario > MOST_OF_SCENARIO:
        problems.append(f"costmodel: {of_scenario} functions in headers take a Scenario; at most {MOST_OF_SCENARIO}")
    problems += [f"{folder}: {count} files; at most {MOST_FILES}" for folder, count in sorted(counts.items()) if count > MOST_FILES]
    problems += [f"{path}: {count} lines; at most {MOST_LINES}" for path, count in sorted(lines.items()) if count > MOST_LINES]
    return problems


def check_the_check():
    """Each kind of problem is found in sources that have it."""
    levels = read_levels("low # a comment\n\nhigh\n")
    assert not problems_of({"high/a.hpp": '#include "low/b.hpp"\n', "low/b.hpp": ""}, levels)
    assert problems_of({"low/b.hpp": '#include "high/a.hpp"\n'}, levels) == ['low/b.hpp:1: includes "high/a.hpp" of a higher level']
    assert "not in levels.txt" in problems_of({"other/b.hpp": ""}, levels)[0]
    assert "at most" in problems_of({"low/b.hpp": "\n" * (MOST_LINES + 1)}, levels)[0]
    for folder in ("low", "tests/low"):
        assert "at most" in problems_of({f"{folder}/{i}.hpp": "" for i in range(MOST_FILES + 1)}, levels)[0]
    assert "take a Scenario" in problems_of({"costmodel/a.hpp": "int f(const Scenario& s);\n" * (MOST_OF_SCENARIO + 1)},
                                            {"costmodel": 0})[0]
    assert not problems_of({"tests/low/a.hpp": '#include "high/a.hpp"\n'}, levels)


def main():
    check_the_check()
    levels = read_levels((ROOT / "tests/structure/levels.txt").read_text())
    top = sorted({name.split("/")[0] for name in levels})
    files = {str(path.relative_to(ROOT)): path.read_text() for folder in top for path in sorted((ROOT / folder).rglob("*"))
             if path.suffix in SOURCES}
    tests = [path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    problems = problems_of({**files, **{str(path): "" for path in tests}}, levels)
    print("\n".join(problems) or f"{len(files)} files in {len(levels)} folders: all includes point downwards; "
          f"{len(tests)} files of tests: no folder has more than {MOST_FILES}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
