#!/usr/bin/env python3
"""Puts one fault at a time into the sources and runs the tests that should see it.

    mutate.py [--number 100] [--seed 1] [--folders costmodel sim]   tries the next faults of the seed's order and extends the table
    mutate.py --folders trainer --paths 'trainer/(store|grid|data)/'  the same for the files whose names match
    mutate.py --headers                                             the same for headers, where each fault takes minutes
    mutate.py --survivors                                           tries those again that no test saw, with the tests as they are now
    mutate.py --summary                                             prints the shares

The faults are drawn from all places of the folders' .cpp files or headers (faults.py). A test that runs for more than five times as long as without a fault has
seen it. The table is results.csv: seen_by is the test program and its first failed case, "nothing" for a survivor, or "compiler"
for a fault that does not compile, which counts neither way. `why` explains a survivor that no test can see.
"""
import argparse
import collections
import concurrent.futures
import csv
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import time

import faults

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = pathlib.Path(__file__).with_name("results.csv")
COLUMNS = ["file", "line", "column", "change", "seen_by", "why", "code"]
# In this order: the first program sees most faults within seconds.
PROGRAMS = {"costmodel": ["test_costmodel", "test_sim", "fomoe"], "sim": ["test_sim", "fomoe"], "trainer": ["test_trainer"]}
# The program fomoe is tested by these scripts, with the options that ctest uses. They must not change while faults are tried.
SCRIPTS = [["answers/answers_test.py"], ["reference/differential_test.py", "--scenarios", "46", "--properties", "23"]]
SNAPSHOT = ("costmodel", "sim", "platforms", "trainer", "experiments", "tests")  # the folders whose sources a snapshot has
OPTIONS = {"test_trainer": ["--test-suite-exclude=slow"]}  # as ctest runs it
# ctest draws 200 cases for each property. Fewer see almost all faults, and --survivors draws 200.
CASES, CASES_FOR_SURVIVORS = 30, 200


class Copy:
    """A snapshot of the sources and of the objects of a finished build. The sources that contain or include a fault are compiled
    and linked in front of the libraries, so that the linker leaves the correct objects out. Neither the working tree nor its build
    changes."""

    def __init__(self, folder, cases):
        self.cases = cases
        self.folder, self.source, self.objects = folder, folder / "source", folder / "objects"
        self.mutants = folder / "mutants"
        self.seconds, self.link, self.compile, self.users = {}, {}, {}, {}

    def prepare(self, build, programs):
        ninja = ["ninja", "-C", build]
        subprocess.run(["nice", *ninja, *programs], check=True, stdout=subprocess.DEVNULL)  # so that objects and sources agree
        shutil.rmtree(self.folder, ignore_errors=True)
        for folder in SNAPSHOT:
            shutil.copytree(ROOT / folder, self.source / folder, ignore=lambda at, names: [
                name for name in names if not pathlib.Path(at, name).is_dir() and not name.endswith((".hpp", ".cpp", ".cuh"))])
        for entry in json.loads((build / "compile_commands.json").read_text()):
            path, words = os.path.relpath(entry["file"], ROOT), shlex.split(entry["command"])
            if "/Unity/" in path:
                sys.exit(f"{build} compiles the files of a folder together; configure it with -DFOMOE_UNITY=OFF")
            if path.split("/")[0] in SNAPSHOT and (build / words[words.index("-o") + 1]).exists():
                self.compile[path] = [self.moved(build, word) for word in words if word != "-Werror"]
        self.read_users(subprocess.run([*ninja, "-t", "deps"], check=True, stdout=subprocess.PIPE, text=True).stdout)
        for program in programs:
            command = subprocess.run([*ninja, "-t", "commands", program], check=True, stdout=subprocess.PIPE, text=True)
            words = shlex.split(command.stdout.splitlines()[-1].removeprefix(": && ").removesuffix(" && :"))
            self.link[program] = words
            for word in words:
                if word.endswith((".o", ".a")) and not word.startswith("/"):
                    (self.objects / word).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(build / word, self.objects / word)
        for program in programs:  # after all copies, as somebody may build meanwhile
            begin = time.monotonic()
            self.linked(program, [])
            if seen := self.run(program, 1800):
                sys.exit(f"{program} fails without a fault: {seen}")
            self.seconds[program] = time.monotonic() - begin
            print(f"{program}: {self.seconds[program]:.0f} s without a fault", flush=True)

    def moved(self, build, word):
        """A word of a compile command, for the snapshot. Precompiled headers are copied when a command names them."""
        if word.endswith("cmake_pch.hxx"):
            header = self.objects / os.path.relpath(word, build)
            if not header.exists():
                header.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(word, header)
                shutil.copy2(word + ".gch", str(header) + ".gch")
            return str(header)
        path = pathlib.Path(word.removeprefix("-I"))
        if not path.is_relative_to(ROOT):
            return word
        inside = path.relative_to(ROOT)  # the rest of the tree, such as LibTorch in .venv, stays where it is
        return word.replace(str(ROOT), str(self.source)) if inside.parts[:1] in [(), *((folder,) for folder in SNAPSHOT)] else word

    def read_users(self, deps):
        """Which sources include a header, from the answer of `ninja -t deps`: a line for an object, and lines with what it reads."""
        source_of = {words[words.index("-o") + 1]: path for path, words in self.compile.items()}
        source = None
        for line in deps.splitlines():
            if not line.startswith(" "):
                source = source_of.get(line.split(":")[0])
            elif source and line.endswith(".hpp"):
                self.users.setdefault(os.path.relpath(line.strip(), ROOT), []).append(source)

    def compiled(self, path):
        """The objects that contain the faulty file, by their names in the build; None if one of them does not compile."""
        shutil.rmtree(self.mutants, ignore_errors=True)
        commands = {}
        for source in [path] if path in self.compile else self.users.get(path, []):
            words = list(self.compile[source])
            at = words.index("-o") + 1
            name, words[at] = words[at], str(self.mutants / words[at])
            if any(self.has(program, name) for program in self.link):
                pathlib.Path(words[at]).parent.mkdir(parents=True, exist_ok=True)
                commands[name] = words
        def compiles(words):
            return subprocess.run(["nice", *words], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(commands) if all(pool.map(compiles, commands.values())) else None

    def has(self, program, name):
        """Whether the program is linked with this object, or with the library that has it."""
        library = "lib" + re.search(r"CMakeFiles/(.*?)\.dir/", name)[1] + ".a"
        return any(word == name or os.path.basename(word) == library for word in self.link[program])

    def linked(self, program, names):
        words = list(self.link[program])
        words[words.index("-o") + 1] = str(self.folder / program)
        first = next(i for i, word in enumerate(words) if word.endswith(".o"))
        mutants = [str(self.mutants / name) for name in names if self.has(program, name)]
        subprocess.run(["nice", *words[:first], *mutants, *(word for word in words[first:] if word not in names)], cwd=self.objects, check=True)

    def run(self, program, limit_s, *options):
        """What the program saw: the name of its first failed case, how it ended, or nothing."""
        if program == "fomoe":
            return next(filter(None, (self.run_command([sys.executable, ROOT / "tests" / script, *more, "--fomoe", self.folder / program], limit_s)
                                      for script, *more in SCRIPTS)), "")
        return self.run_command([self.folder / program, "--abort-after=1", "--no-colors=true", *OPTIONS.get(program, []), *options], limit_s)

    def run_command(self, command, limit_s):
        environment = {**os.environ, "RC_PARAMS": f"seed=20261120 max_success={self.cases}"}
        # A fault may make a program, or one that it starts, allocate or compute without end.
        limited = ["prlimit", f"--as={8 << 30}", f"--cpu={int(limit_s) + 1}", "nice", *command]
        try:
            done = subprocess.run(limited, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit_s)
        except subprocess.TimeoutExpired:
            return "does not end"
        if done.returncode == 0:
            return ""
        output = done.stdout.decode(errors="replace")
        cases = re.findall(r"^(?:TEST CASE:|MISMATCH)\s+(.*?)(?:: expected.*)?$", output, re.MULTILINE)
        if command[0] == sys.executable and not cases:  # the answers
            return output.split("\n")[0][:120] or f"ends with status {done.returncode}"
        return cases[-1] if cases else f"ends with status {done.returncode}"

    def seen_by(self, path, fault, programs):
        target = self.source / path
        original = target.read_text()
        try:
            target.write_text(fault.apply(original))
            names = self.compiled(path)
        finally:
            target.write_text(original)
        if names is None:
            return "compiler"
        for program in programs:
            if not any(self.has(program, name) for name in names):
                continue
            self.linked(program, names)
            limit_s = 5 * self.seconds[program] + 30
            # The tests of the same folder see most faults, and are done soon.
            nearby = [] if program == "fomoe" else [f"--source-file=*{os.path.dirname(path)}/*"]
            if seen := (nearby and self.run(program, limit_s, *nearby)) or self.run(program, limit_s):
                return f"{program}: {seen}"
        return "nothing"


def read_table():
    if not TABLE.exists():
        return []
    with TABLE.open(newline="") as file:
        return list(csv.DictReader(file))


def write_table(rows):
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def key_of(row):
    return row["file"], row["code"], row["column"], row["change"]  # not the line number: other lines may be added


def drawn(copy, folders, paths, seed, pattern):
    """All faults of the folders' files that match, in the order of the seed."""
    places = []
    for folder in folders:
        for path in sorted((copy.source / folder).rglob(pattern)):
            name = str(path.relative_to(copy.source))
            # Files of another kind of build, and the main functions of other programs than the tests
            if not re.search(paths, name) or (name not in copy.compile and name not in copy.users) or path.name == "main.cpp":
                continue
            text = path.read_text()
            lines = text.split("\n")
            for fault in faults.of_text(text):
                row = {"file": str(path.relative_to(copy.source)), "line": fault.line, "column": str(fault.begin + 1),
                       "change": fault.change, "seen_by": "", "why": "", "code": lines[fault.line - 1].strip()}
                places.append((row, fault))
    random.Random(seed).shuffle(places)
    return places


def summary(rows):
    for folder in sorted({row["file"].split("/")[0] for row in rows}):
        count = collections.Counter()
        for row in rows:
            if row["file"].startswith(folder + "/"):
                seen = row["seen_by"]
                count["compiler" if seen == "compiler" else "explained" if seen == "nothing" and row["why"] else
                      "nothing" if seen == "nothing" else "seen"] += 1
        tried = count["seen"] + count["nothing"] + count["explained"]
        print(f"{folder}: {tried} faults, {count['seen']} seen ({100 * count['seen'] / max(tried, 1):.1f} %), {count['nothing']} not "
              f"seen, {count['explained']} that change nothing visible; {count['compiler']} did not compile")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folders", nargs="+", default=["costmodel", "sim"])
    parser.add_argument("--paths", default="", help="regular expression: only files whose path has a match")
    parser.add_argument("--headers", action="store_true", help="faults in headers instead of .cpp files")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev", help="a build of the working tree, which is brought up to date")
    parser.add_argument("--copy", type=pathlib.Path, default=ROOT / "build/mutation", help="folder of the snapshot")
    parser.add_argument("--survivors", action="store_true")
    parser.add_argument("--summary", action="store_true")
    values = parser.parse_args()
    rows = read_table()
    if values.summary:
        return summary(rows)
    copy = Copy(values.copy.resolve(), CASES_FOR_SURVIVORS if values.survivors else CASES)
    programs = list(dict.fromkeys(program for folder in values.folders for program in PROGRAMS[folder]))
    copy.prepare(values.build.resolve(), programs)
    known = {key_of(row): row for row in rows}
    left = values.number
    for row, fault in drawn(copy, values.folders, values.paths, values.seed, "*.hpp" if values.headers else "*.cpp"):
        found = known.get(key_of(row))
        if left == 0 and not values.survivors:
            break
        if (found is None) == values.survivors or (found and (found["seen_by"] != "nothing" or found["why"])):
            continue
        row["seen_by"] = copy.seen_by(row["file"], fault, PROGRAMS[row["file"].split("/")[0]])
        print(f"{row['file']}:{row['line']}: {row['change']}: {row['seen_by']}", flush=True)
        rows = read_table()  # somebody may have explained a survivor meanwhile
        rows = [old for old in rows if key_of(old) != key_of(row)] + [row]
        write_table(rows)
        left -= row["seen_by"] != "compiler"
    summary(rows)


if __name__ == "__main__":
    main()
