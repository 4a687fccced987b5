#!/usr/bin/env python3
"""Writes the folder of token files that `trainer.data` names, one domain in each call:

    DIR/DOMAIN/00000.bin, 00001.bin, …    token ids, uint16 if the vocabulary has at most 65,536 tokens, otherwise
                                          uint32; each document ends with the tokenizer's end token

Documents come from a data set of the Hugging Face Hub, which is streamed, or from local files and folders: each .txt file is a
document, and each line of a .jsonl file is one (also .txt.gz, .jsonl.gz). With --suffix .py --suffix .md, so is each file with one
of these suffixes, such as a source. What is left out of the folders is said. The same documents give the same bytes. It needs the
packages `datasets` for the Hub, and `tokenizers` for any tokenizer but "bytes":

    python3 -m venv .venv-data && .venv-data/bin/pip install datasets tokenizers
    .venv-data/bin/python tools/tokenize_corpus.py --dataset allenai/c4 --config en --tokenizer HuggingFaceTB/cosmo2-tokenizer --output c4
    .venv-data/bin/python tools/tokenize_corpus.py texts/ --tokenizer corpus/tokenizer.json --output data --domain texts
"""

import argparse
import array
import collections
import gzip
import itertools
import json
import os
import pathlib
import sys

SUFFIXES = (".txt", ".jsonl", ".txt.gz", ".jsonl.gz")


def fail(message):
    print(f"tokenize_corpus: {message}", file=sys.stderr)
    sys.exit(2)


def imported(package):
    try:
        return __import__(package)
    except ImportError:
        fail(f"the Python package {package} is missing; install it, for example with pip install {package}")


class LocalDocuments:
    """The texts of files, each folder sorted by path, whatever order the file system gives; and what was left out."""

    def __init__(self, sources, field, suffixes):
        self.sources, self.field, self.suffixes = [pathlib.Path(source) for source in sources], field, suffixes
        self.skipped = collections.Counter()  # files by suffix
        self.binary = self.replaced = 0  # files that are no text, and files of which some bytes were replaced

    def files(self):
        for source in self.sources:
            if not source.exists():
                fail(f"{source}: got no file or folder; expected one with {', '.join(self.suffixes)} files; for example texts/")
            if not source.is_dir():
                yield source, True
                continue
            for path in sorted(path for path in source.rglob("*") if path.is_file()):
                if path.name.endswith(self.suffixes):
                    yield path, False
                else:
                    self.skipped[path.suffix or "(no suffix)"] += 1

    def __iter__(self):
        for path, named in self.files():
            if ".jsonl" in path.suffixes:
                yield from self.rows(path)
            elif (text := self.text(path, named)) is not None:
                yield text

    def text(self, path, named):
        content = (gzip.open if path.name.endswith(".gz") else open)(path, "rb").read()
        if b"\0" in content:  # no text has zeros
            if named:
                fail(f"{path}: got a file that is no text; expected texts, {', '.join(self.suffixes)}; for example texts/a.txt")
            self.binary += 1
            return None
        text = content.decode(errors="replace")
        self.replaced += "\ufffd" in text and "\ufffd".encode() not in content
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def rows(self, path):
        with (gzip.open if path.name.endswith(".gz") else open)(path, "rt", encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield json.loads(line)[self.field]
                except (ValueError, KeyError, TypeError):
                    fail(f"{path}:{number}: got a line without text; expected a JSON object with the field "
                         f"\"{self.field}\"; for example {{\"{self.field}\": \"Once upon a time\"}}")

    def say_left_out(self):
        if self.skipped:
            kinds = ", ".join(f"{count:,} {suffix}" for suffix, count in self.skipped.most_common(8))
            others = len(self.skipped) - 8
            print(f"tokenize_corpus: left out {sum(self.skipped.values()):,} files that are not {', '.join(self.suffixes)}: {kinds}"
                  f"{f' and {others} other kinds' if others > 0 else ''}; --suffix {next(iter(self.skipped.most_common(1)))[0]} reads such files",
                  file=sys.stderr)
        if self.binary:
            print(f"tokenize_corpus: left out {self.binary:,} files that are no text", file=sys.stderr)
        if self.replaced:
            print(f"tokenize_corpus: {self.replaced:,} files are not UTF-8; what could not be read became U+FFFD", file=sys.stderr)


def hub_documents(name, config, split, field):
    for row in imported("datasets").load_dataset(name, config, split=split, streaming=True):
        if field not in row:
            fail(f"--text-field: got {field}, which {name} does not have; expected one of {', '.join(row)}; for example text")
        yield row[field]


class Bytes:
    """The simplest tokenizer: a token for each byte, and 256 as the end token."""

    vocabulary, end = 257, 256

    def encode(self, texts):
        return [text.encode() for text in texts]


class Bpe:
    """A tokenizer of the package `tokenizers`: a file tokenizer.json, or a name on the Hub."""

    def __init__(self, name, end):
        tokenizer = imported("tokenizers").Tokenizer
        self.tokenizer = tokenizer.from_file(name) if os.path.exists(name) else tokenizer.from_pretrained(name)
        self.vocabulary = self.tokenizer.get_vocab_size()
        self.end = self.tokenizer.token_to_id(end)
        if self.end is None:
            fail(f"--end-token: got {end}, which is no token of {name}; expected its token between documents; for example </s>")

    def encode(self, texts):
        return [encoding.ids for encoding in self.tokenizer.encode_batch(texts, add_special_tokens=False)]


def write_whole(path, ids):
    """Under a temporary name first: nobody sees half a file."""
    if sys.byteorder == "big":
        ids.byteswap()
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(ids.tobytes())
    os.replace(temporary, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", help="local files and folders")
    parser.add_argument("--dataset", metavar="NAME", help="data set of the Hugging Face Hub instead of local files")
    parser.add_argument("--config", help="configuration of the data set, such as cosmopedia-v2")
    parser.add_argument("--split", default="train", help="split of the data set (default: train)")
    parser.add_argument("--text-field", default="text", metavar="NAME", help="field of a row that contains the text (default: text)")
    parser.add_argument("--suffix", action="append", default=[], metavar=".S", help="read files with this suffix too, each as a document; "
                        "may be repeated")
    parser.add_argument("--tokenizer", required=True, help="a file tokenizer.json, a name on the Hub, or bytes")
    parser.add_argument("--end-token", default="<|endoftext|>", help="token after each document (default: <|endoftext|>)")
    parser.add_argument("--vocabulary", type=int, help="model.vocabulary, if it is larger than that of the tokenizer")
    parser.add_argument("--output", required=True, metavar="DIR", help="folder that trainer.data will name")
    parser.add_argument("--domain", default="", help="sub-folder for these documents (default: none)")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first N documents")
    parser.add_argument("--documents", type=int, metavar="N", help="maximum number of documents (default: all)")
    parser.add_argument("--shard-megabytes", type=float, default=512, help="size of a file in MB (default: 512)")
    arguments = parser.parse_args()
    if bool(arguments.sources) == bool(arguments.dataset):
        fail("got no documents, or two kinds of them; expected --dataset or local files; for example --dataset allenai/c4")
    for suffix in arguments.suffix:
        if not suffix.startswith(".") or len(suffix) < 2:
            fail(f"--suffix: got {suffix}; expected the end of file names, with its point; for example .py")
    tokenizer = Bytes() if arguments.tokenizer == "bytes" else Bpe(arguments.tokenizer, arguments.end_token)
    if (vocabulary := arguments.vocabulary or tokenizer.vocabulary) < tokenizer.vocabulary:
        fail(f"--vocabulary: got {vocabulary}; expected at least the tokenizer's; for example {tokenizer.vocabulary}")
    folder = pathlib.Path(arguments.output) / arguments.domain
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.glob("*.bin")):
        fail(f"{folder}: got a folder that already has .bin files; expected another one; for example --domain web")

    local = LocalDocuments(arguments.sources, arguments.text_field, (*SUFFIXES, *arguments.suffix))
    documents = (hub_documents(arguments.dataset, arguments.config, arguments.split, arguments.text_field)
                 if arguments.dataset else iter(local))
    empty = 0
    last = None if arguments.documents is None else arguments.skip + arguments.documents

    def with_text(texts):
        nonlocal empty
        for text in texts:
            empty += not text
            if text:
                yield text

    documents = with_text(itertools.islice(documents, arguments.skip, last))
    ids = array.array("H" if vocabulary <= 65536 else "I")
    shard = max(1, int(arguments.shard_megabytes * 1e6 / ids.itemsize))
    count = tokens = files = 0
    while texts := list(itertools.islice(documents, 1000)):
        for encoded in tokenizer.encode(texts):
            ids.extend([*encoded, tokenizer.end])
        count += len(texts)
        while len(ids) >= shard:
            write_whole(folder / f"{files:05}.bin", ids[:shard])
            tokens, files, ids = tokens + shard, files + 1, ids[shard:]
    local.say_left_out()
    if empty:
        print(f"tokenize_corpus: left out {empty:,} documents without text", file=sys.stderr)
    if not count:
        fail("got no documents; expected at least one; for example a smaller --skip")
    if ids:
        write_whole(folder / f"{files:05}.bin", ids)
        tokens, files = tokens + len(ids), files + 1
    print(f"{folder}: {tokens:,} tokens of {count:,} documents in {files} files; set model.vocabulary={vocabulary} or larger"
          f"{', up to 65,536' if vocabulary <= 65536 else ''}")


if __name__ == "__main__":
    main()
