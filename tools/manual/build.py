#!/usr/bin/env python3
"""Builds the manual from the Markdown of the repository and from the program's own answers, without network.

    build.py --fomoe build/release/bin/fomoe        writes build/manual/site; open index.html there

The pages keep their places, so that links between them stay right. A link to another file of the repository leads to a copy
of the file; a link to a folder without a page becomes plain text. Exit status 1 if any link or anchor leads nowhere.
Links to other sites are not followed. Needs tools/manual/requirements.txt.
"""

import argparse
import ast
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT = ROOT / "build/manual"
# A link, or code, in which nothing is a link.
LINK_OR_CODE = re.compile(r"```.*?```|(!?)\[((?:[^\]`]|`[^`]*`)*)\]\(([^()\s]+)\)|`[^`\n]*`", re.DOTALL)


def pages():
    """The Markdown files that the table of contents names, except those that this program writes."""
    named = re.findall(r": (\S+\.md)$", (HERE / "mkdocs.yml").read_text(), re.MULTILINE)
    return [name for name in named if (ROOT / name).exists()], named


def relinked(text, page, known, missing):
    """The page's text with links that work in the manual. Copies the files that it links to."""
    def replace(found):
        image, label, target = found.groups()
        if target is None or re.match(r"[a-z]+:|#", target):
            return found[0]
        path, _, anchor = target.partition("#")
        anchor = "#" + anchor if anchor else ""
        place = os.path.normpath(os.path.join(os.path.dirname(page), path))
        if place in known:
            return found[0]
        if (ROOT / place).is_dir():
            inside = f"{place}/README.md"
            if inside not in known:
                return label
            return f"{image}[{label}]({os.path.relpath(inside, os.path.dirname(page) or '.')}{anchor})"
        if not (ROOT / place).is_file() or place.startswith(".."):
            missing.append(f"{page}: {target}: no such file")
            return label
        if place.endswith(".md"):  # a page that is not in the manual would come without its own links
            return label
        copy = OUT / "docs" / place
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / place, copy)
        return found[0]
    return LINK_OR_CODE.sub(replace, text)


def answer(fomoe, *arguments, folder=ROOT):
    ran = subprocess.run([fomoe, *arguments], capture_output=True, text=True, cwd=folder)
    if ran.returncode != 0:
        sys.exit(f"fomoe {' '.join(arguments)}: {ran.stderr}")
    return ran.stdout


def wrapped(command, width=76):
    """The command in lines that fit beside the table of contents; it may be pasted as it is."""
    lines = [""]
    for part in re.split(r" (?=--)", command):
        if lines[-1] and len(lines[-1]) + len(part) + 3 > width:
            lines.append("    ")
        lines[-1] += (" " if lines[-1].strip() else "") + part
    return " \\\n".join(lines)


def with_answers(fomoe, page, scenario):
    """The page, in which each line "@@ fomoe …" has become that command and its answer; "@@8 fomoe …" gives the first 8 lines of
    the answer, and "@@:A|B fomoe …" the lines that begin with A or B. The commands run in a folder with the files that the page
    tells the reader to save, the tutorial's scenario as mine.toml, and the config.json of a model."""
    text = (HERE / "pages" / page).read_text()
    with tempfile.TemporaryDirectory() as parent:
        folder = pathlib.Path(parent, "my-model")  # answers name a model by its folder
        folder.mkdir()
        shutil.copyfile(ROOT / "experiments/models/qwen3-30b-a3b.json", pathlib.Path(folder, "config.json"))
        saved = re.findall(r"Save this as `([\w.-]+)`.*?\n```\w*\n(.*?)```", text, re.DOTALL)
        for name, content in [("mine.toml", scenario), *saved]:
            pathlib.Path(folder, name).write_text(content)

        def replace(found):
            lines = answer(fomoe, *found[2].split(), folder=folder).splitlines()
            if found[1].startswith(":"):
                shown = [line for line in lines if re.match(found[1][1:], line)]
            else:
                most = int(found[1] or len(lines))
                shown = lines[:most] + ["…"] * (len(lines) > most)
            command = "```bash\n" + wrapped(f"fomoe {found[2]}") + "\n```\n"
            return command + ("\n```text\n" + "\n".join(shown) + "\n```" if shown else "")

        return re.sub(r"^@@(\d*|:\S+) fomoe (.*)$", replace, text, flags=re.MULTILINE)


def own_pages(fomoe):
    """The pages of this folder, by their names in the manual."""
    scenario = re.search(r"```toml\n(.*?)```", (HERE / "pages/tutorial.md").read_text(), re.DOTALL)[1]
    paths = sorted(path.relative_to(HERE / "pages").as_posix() for path in (HERE / "pages").rglob("*.md"))
    return {page: with_answers(fomoe, page, scenario) for page in paths}


def commands_page(fomoe):
    overview = answer(fomoe, "--help")
    names = re.findall(r"^  (\w+) ", overview.split("Commands:")[1].split("\n\n")[0], re.MULTILINE)
    text = f"# Commands\n\n```text\n{overview}```\n"
    for name in names:
        helps = [(name,)] if name != "profile" else [(name, part) for part in ("import", "compose", "scale")]
        for words in helps:
            text += f"\n## fomoe {' '.join(words)}\n\n```text\n{answer(fomoe, *words, '--help')}```\n"
    return text


def keys_page(fomoe):
    text = "# Keys\n\nThe program prints this page: `fomoe list keys`. `fomoe list keys --json-schema` prints the keys of a scenario for editors.\n"
    kinds = re.split(r"^(\w+ file[^\n]*)\n", answer(fomoe, "list", "keys"), flags=re.MULTILINE)
    for title, body in zip(kinds[1::2], kinds[2::2]):
        text += f"\n## {title}\n"
        for part in re.split(r"\n(?=\[)", body):
            table, _, keys = part.partition("\n") if part.startswith("[") else ("", "", part)
            if keys.strip():
                text += (f"\n### `{table}` of a {title.split()[0].lower()}\n" if table else "") + f"\n```text\n{keys.strip()}\n```\n"
    return text


def python_page():
    """Signatures and descriptions, from the sources: the package need not be installed."""
    source = (ROOT / "experiments/python/fomoe/__init__.py").read_text()
    text = "# Python functions\n\n"
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            text += f"## fomoe.{node.name}\n\n```python\n{node.name}({ast.unparse(node.args)}) -> {ast.unparse(node.returns)}\n```\n\n```text\n{ast.get_docstring(node)}\n```\n\n"
    for node in ast.parse((ROOT / "experiments/python/fomoe/_answers.py").read_text()).body:
        if isinstance(node, ast.ClassDef):
            text += f"## fomoe.{node.name}\n\n```text\n{ast.get_docstring(node)}\n```\n\n"
            text += "".join(f"- `{part.name}({ast.unparse(part.args).replace('self, ', '').replace('self', '')})`: {(ast.get_docstring(part) or '').splitlines()[0]}\n"
                            for part in node.body if isinstance(part, ast.FunctionDef) and ast.get_docstring(part)) + "\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fomoe", default=str(ROOT / "build/release/bin/fomoe"), help="the program whose answers become the reference")
    fomoe = os.path.abspath(parser.parse_args().fomoe)
    shutil.rmtree(OUT, ignore_errors=True)
    copied, named = pages()
    written = {**own_pages(fomoe), "reference/commands.md": commands_page(fomoe), "reference/keys.md": keys_page(fomoe),
               "reference/methods.md": f"# Methods\n\n```text\n{answer(fomoe, 'list', 'methods', '--details')}```\n",
               "reference/python.md": python_page()}
    missing = [f"mkdocs.yml: {name}: no such page" for name in named if name not in copied and name not in written]
    for page in copied:
        target = OUT / "docs" / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(relinked((ROOT / page).read_text(), page, {*copied, *written}, missing))
    for page, text in written.items():
        (OUT / "docs" / page).parent.mkdir(parents=True, exist_ok=True)
        (OUT / "docs" / page).write_text(text)
    if missing:
        sys.exit("\n".join(missing))
    # --strict: a link or an anchor that mkdocs does not find is an error; with --quiet it would not be noticed.
    sys.exit(subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "-f", HERE / "mkdocs.yml"]).returncode)


if __name__ == "__main__":
    main()
