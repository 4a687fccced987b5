#!/usr/bin/env python3
"""Tests the man pages that tools/man/man_pages.py makes from --help.

    man_pages_test.py PROGRAM…      every command has a page, every option is on it with its whole text, and man finds no fault
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/man"))
import man_pages  # noqa: E402


def squeezed(text):
    """The text without spaces, so that it does not matter where lines were broken."""
    return re.sub(r"\s+", "", text)


def unescaped(roff):
    text = re.sub(r"\\\[u([0-9A-F]+)\]", lambda found: chr(int(found[1], 16)), roff)
    for escape, plain in (("\\:", ""), ("\\fB", ""), ("\\fI", ""), ("\\fR", ""), ("\\&", ""), ("\\(aq", "'"), ("\\(ga", "`"), ("\\(ha", "^"), ("\\(ti", "~"),
                          ("\\-", "-"), ("\\e", "\\")):
        text = text.replace(escape, plain)
    return text


def check_reading():
    """Tables of options, by hand: a name up to the column, a default, and words that the help cut or did not cut."""
    table = ["  --a FILE (=x) words that end at ", "                the margin; none", "  -h [ --help ] help", "  --b NAME,…    two"]
    read = man_pages.read_options(table)
    assert read == [("--a FILE (=x)", "words that end at the margin; none"), ("-h [ --help ]", "help"), ("--b NAME,…", "two")], read
    width = 36
    assert man_pages.joined(["x" * 20 + " see a/b/c/READ", "ME.md (default)"], width) == "x" * 20 + " see a/b/c/READ ME.md (default)"
    assert man_pages.joined(["see experiments/plans/and/more/READ", "ME.md (default)"], width) == "see experiments/plans/and/more/README.md (default)"
    assert man_pages.option("-h [ --help ]", "help")[1] == "\\fB\\-h\\fR, \\fB\\-\\-help\\fR"
    assert man_pages.option("--a FILE (=x)", "words")[1:] == ["\\fB\\-\\-a\\fR \\fIFILE\\fR", "words (default: x)"]
    assert man_pages.escaped(".x 'a' \\n ≤") == "\\&.x \\(aqa\\(aq \\en \\[u2264]"


def check_page(name, page, program):
    """The page of a command has every option of its --help, in order and complete."""
    command = name.removesuffix(".1").removeprefix(pathlib.Path(program).name).strip("-").split("-") if name != pathlib.Path(program).name + ".1" else []
    text = man_pages.help_of(program, command)
    plain = unescaped(page)
    for section in ("NAME", "SYNOPSIS", "EXAMPLES") if "Examples" in text else ("NAME", "SYNOPSIS"):
        assert f".SH {section}\n" in page, f"{name}: no section {section}"
    section = plain.partition(".SH OPTIONS\n")[2].partition(".SH ")[0]
    shown = re.findall(r"^\.TP\n(-.*)\n(.*)$", section, re.MULTILINE)
    in_table = text.partition("How to start it")[0]
    options = [line for line in in_table.split("\n") if man_pages.is_option(line)]
    assert len(shown) == len(options), f"{name}: got {len(shown)} options, expected {len(options)}"
    squeezed_help = squeezed(in_table)
    for title, description in shown:
        words = squeezed(re.sub(r" \(default: [^()]*\)$", "", description))  # a default of "(=x)" stands elsewhere in the help
        assert words in squeezed_help, f"{name}: {title}: got {description!r}, which is not in --help"
    for example in re.findall(r"^  (\S*fomoe\S* .*)$", text.split("Examples")[-1], re.MULTILINE) if "Examples" in text else []:
        assert example in plain, f"{name}: no example {example}"
    assert page.isascii(), f"{name}: has other characters than ASCII"
    assert max(map(len, page.split("\n"))) < 2000


def check_with_man(folder):
    """man, or mandoc, reads every page without a warning."""
    if shutil.which("man") and shutil.which("groff"):
        command = ["man", "--warnings=w", "-Tutf8", "-l"]
    elif shutil.which("mandoc"):
        command = ["mandoc", "-T", "lint", "-W", "warning"]
    else:
        print("not checked: the form of the pages, because neither man with groff nor mandoc is installed")
        return
    for page in sorted(folder.glob("*.1")):
        done = subprocess.run([*command, str(page)], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
        assert done.returncode == 0 and not done.stderr, f"{page.name}: {done.stderr}"
    bad = folder / "bad.1"
    bad.write_text('.TH "BAD" "1"\n.SH NAME\nbad \\- a page with an unknown escape \\[nonsense] and a macro\n.NOSUCHMACRO\n')
    done = subprocess.run([*command, str(bad)], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"})
    assert done.returncode != 0 or done.stderr, "a bad page was not noticed"


def main():
    check_reading()
    pages = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for program in sys.argv[1:]:
            made = man_pages.pages_of(program, "1.0", "2026-01-01")
            base = pathlib.Path(program).name
            listed = man_pages.commands_of(man_pages.help_of(program, []), base)
            if base != "fomoe-wan":  # its commands share one --help
                assert listed, f"{base}: no commands"
                for command, _ in listed:
                    assert f"{base}-{command}.1" in made, f"no page of {base} {command}"
            for name, page in made.items():
                check_page(name, page, program)
                (folder / name).write_text(page)
            pages += len(made)
        check_with_man(folder)
    print(f"{pages} pages are well formed and complete")


if __name__ == "__main__":
    main()
