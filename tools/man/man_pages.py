#!/usr/bin/env python3
"""Writes man pages from the --help of programs, so that nothing in them can go stale.

    man_pages.py --output FOLDER PROGRAM…      one page for each program and each of its commands: fomoe.1, fomoe-simulate.1, …

`cmake --build BUILD --target man` calls this for the programs of a build, and `cmake --install` then installs the pages.
SOURCE_DATE_EPOCH sets the date of the pages (default: today).
"""
import argparse
import datetime
import os
import pathlib
import re
import subprocess
import sys
import time

LINE = 80  # the width of the options' table in --help


def help_of(program, command):
    environment = {**os.environ, "COLUMNS": str(LINE), "LC_ALL": "C.UTF-8"}
    done = subprocess.run([program, *command, "--help"], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"man_pages.py: {' '.join([program, *command])} --help: got exit status {done.returncode}; expected 0; "
                 f"for example build/release/bin/fomoe\n{done.stderr}")
    return done.stdout


def escaped(text):
    """Text as roff: no character means anything but itself, and every character is ASCII."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")
    # Long lists without spaces may break after a comma.
    text = re.sub(r"\S{40,}", lambda word: word[0].replace(",", ",\\:"), text)
    text = "".join(c if ord(c) < 128 else f"\\[u{ord(c):04X}]" for c in text)
    return "\\&" + text if text.startswith(".") else text


# --- reading --help ---

def joined(lines, width):
    """The words of a wrapped description. A word that is longer than half a line is cut at the end of a full line."""
    text = ""
    for i, line in enumerate(lines):
        text += line
        last = i + 1 == len(lines)
        cut = len(line) >= width - 1 and " " not in line[len(line) // 2:]
        if not last and not line.endswith(" ") and not cut:
            text += " "
    return text.strip()


def read_options(lines):
    """[(name, description)] of the table of options, whose descriptions all begin in one column."""
    starts = [len(line) - len(line.lstrip()) for line in lines if not line.startswith("  -")]
    starts += [found.end() for line in lines if (found := re.match(r"  -\S.*?\s{2,}(?=\S)", line))]
    column = max(set(starts), key=starts.count) if starts else LINE
    options = []
    for line in lines:
        if line.startswith("  -"):
            # Two spaces end a name. A name with one space after it reaches up to the column, or into it.
            apart = re.match(r"(  -\S.*?)\s{2,}(\S.*)$", line)
            alone = len(line) <= column or line[column - 1] != " "
            name, rest = apart.groups() if apart else (line, "") if alone else (line[:column], line[column:])
            options.append([name.strip(), [rest] if rest.strip() else []])
        elif options:
            options[-1][1].append(line[column:] if not line[:column].strip() else line.strip())
    return [(name, joined(parts, LINE - column)) for name, parts in options]


def is_option(line):
    return re.match(r"  -{1,2}[A-Za-z]", line) is not None


def read_help(text, name):
    """The parts of a --help: title, usage (lines), options, and sections [(title or "", lines)] in their order."""
    lines = text.rstrip("\n").split("\n")
    found = {"title": "", "usage": [], "options": [], "sections": [("", [])]}
    i = 0
    if not lines[0].startswith("Usage:"):
        # "fomoe-train run S.toml [options]: trains …", "fomoe: predicts …" or "fomoe-wan emulates …"
        head, colon, rest = lines[0].partition(": ")
        if not colon:
            head, rest = name, lines[0][len(name):]
        found["title"] = rest.strip().rstrip(":")
        if head != name or " " in name:
            found["usage"].append(head)
        i = 1
    while i < len(lines):
        line = lines[i]
        if line.startswith("Usage:"):
            found["usage"].append(line[len("Usage:"):].strip())
            while i + 1 < len(lines) and lines[i + 1].startswith("       "):
                i += 1
                found["usage"].append(lines[i].strip())
        elif line == "Options:":
            pass
        elif is_option(line) and not found["sections"][-1][0]:
            begin = i
            while i < len(lines) and (is_option(lines[i]) or lines[i].startswith("      ")):
                i += 1
            found["options"] += read_options(lines[begin:i])
            continue
        elif re.match(r"(Examples|Commands|How to start it):?$", line):
            found["sections"].append((line.rstrip(":"), []))
        else:
            found["sections"][-1][1].append(line)
        i += 1
    return found


def commands_of(text, name):
    """The names and sentences of a program's commands."""
    listed = re.search(r"^Commands:\n((?:  .*\n)+)", text, re.MULTILINE)
    if listed:
        return re.findall(r"^  ([a-z][a-z-]*) +(.*)$", listed[1], re.MULTILINE)
    own = re.findall(rf"^  {re.escape(name)} ([a-z][a-z-]*)  +(.*)$", text, re.MULTILINE)
    if own:
        return own
    usage = re.findall(rf"^(?:Usage:)? *{re.escape(name)} ([a-z][a-z-]*) ", text, re.MULTILINE)
    sentences = dict(re.findall(r"^ *([a-z][a-z-]*)  +(.*)$", text, re.MULTILINE))
    usage = [command for command in dict.fromkeys(usage) if command in sentences]
    return [(command, sentences[command]) for command in usage] if len(usage) > 1 else []


# --- writing a page ---

def column_of(lines):
    """Where the second column of a table begins; None if the lines are not a table."""
    for column in range(4, max(map(len, lines))):
        begins = all(len(line) > column and line[column - 1] == " " and line[column] != " " for line in lines)
        if begins and any(line[column - 2] == " " for line in lines) and lines[0][:column].strip():
            return column
    return None


def table(lines, column):
    rows = []
    for line in lines:
        if line[:column].strip():
            rows.append([line[:column].strip(), line[column:].strip()])
        else:
            rows[-1][1] += " " + line.strip()
    return [roff for name, text in rows for roff in (".TP", f"\\fB{escaped(name)}\\fR", escaped(text))]


def is_fixed(line):
    return line.startswith("  ") or re.match(r"[a-z]+  +\S", line) is not None


def blocks(lines):
    """[(whether its lines stay as they are, lines)], which empty lines or a change of indentation separate."""
    found = []
    for line in [*lines, ""]:
        if not line.strip():
            found.append((False, []))
        elif found and found[-1][1] and found[-1][0] == is_fixed(line):
            found[-1][1].append(line)
        else:
            found.append((is_fixed(line), [line]))
    return [(fixed, block) for fixed, block in found if block]


def paragraphs(lines, tables=True):
    """Prose is filled, and tables become lists. Other indented lines, such as commands, stay as they are."""
    roff = []
    for fixed, block in blocks(lines):
        column = column_of(block) if fixed and tables else None
        if column:
            roff += table(block, column)
        else:
            roff += [".PP", *([".nf"] if fixed else []), *map(escaped, block), *([".fi"] if fixed else [])]
    return roff


def option(name, description):
    default = re.search(r" \(=(.*)\)$", name)
    if default:
        name = name[:default.start()]
        description += f" (default: {default[1]})"
    short = re.match(r"(-\w) \[ (--\S+) \](.*)", name)
    name = f"{short[1]}, {short[2]}{short[3]}" if short else name
    words = [escaped(word) for word in name.split(" ")]
    shown = " ".join(f"\\fB{word.rstrip(',')}\\fR{',' if word.endswith(',') else ''}" if word.startswith("\\-") and "|" not in word
                     else f"\\fI{word}\\fR" for word in words)
    return [".TP", shown, escaped(description)]


def page(name, sentence, parts, also, version, date):
    roff = [f'.TH "{escaped(name.replace(" ", "-").upper())}" "1" "{date}" "fomoe {version}" "fomoe"',
            ".nh", ".ad l",  # names of keys and files are not hyphenated
            ".SH NAME",
            f"{escaped(name.replace(' ', '-'))} \\- {escaped(sentence)}", ".SH SYNOPSIS", ".nf",
            *[escaped(line) for line in parts["usage"] or [f"{name} COMMAND [options]"]], ".fi"]
    for title, lines in parts["sections"]:
        lines = [line for line in lines if not re.match(r"For example: |  \S+ <command> --help$", line)]
        if title == "" and parts["title"] and parts["title"] != sentence:
            lines = [parts["title"][0].upper() + parts["title"][1:] + ".", ""] + lines
        while lines and not lines[0].strip():
            lines = lines[1:]
        if lines:
            roff += [f".SH {(title or 'Description').upper()}", *paragraphs(lines, title != "Examples")]
        if title == "" and parts["options"]:
            roff.append(".SH OPTIONS")
            for one in parts["options"]:
                roff += option(*one)
    if also:
        roff += [".SH SEE ALSO", ",\n".join(f"\\fB{escaped(other.replace(' ', '-'))}\\fR(1)" for other in also)]
    return "\n".join(line for line in roff if line != "") + "\n"


def pages_of(program, version, date):
    """{file name: page} of a program and its commands."""
    base = pathlib.Path(program).name
    pages = {}

    def add(command, sentence, above):
        name = " ".join([base, *command])
        text = help_of(program, command)
        parts = read_help(text, name)
        # Without a --help of its own, a command is described on the page of the program.
        inside = [(one, said) for one, said in commands_of(text, name) if help_of(program, [*command, one]) != text]
        also = above + [f"{name} {one}" for one, _ in inside]
        pages[name.replace(" ", "-") + ".1"] = page(name, sentence or parts["title"], parts, also, version, date)
        for one, said in inside:
            add([*command, one], said, [name])

    add([], "", [])
    return pages


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("programs", nargs="+", metavar="PROGRAM")
    parser.add_argument("--output", required=True, metavar="FOLDER")
    parser.add_argument("--version", default="", help="version in the footer of the pages")
    given = parser.parse_args()
    date = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())), datetime.timezone.utc).strftime("%Y-%m-%d")
    folder = pathlib.Path(given.output)
    folder.mkdir(parents=True, exist_ok=True)
    for program in given.programs:
        for name, text in pages_of(program, given.version, date).items():
            (folder / name).write_text(text)


if __name__ == "__main__":
    main()
