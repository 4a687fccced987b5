#!/usr/bin/env python3
"""Builds a corpus for `fomoe-train run` from text that any Debian or Python installation contains.

It collects the sources of Python's standard library and the installed documentation (or the given files and folders), trains
a byte-level BPE tokenizer on them, and writes

    DIR/tokenizer.json   the tokenizer, for Hugging Face's `tokenizers`
    DIR/corpus.bin       token ids: uint16 if the vocabulary has at most 65,536 tokens, otherwise uint32; each document
                         ends with the token <|endoftext|>

The same input files give the same output bytes. It needs the package `tokenizers` from PyPI:

    python3 -m venv .venv-data && .venv-data/bin/pip install tokenizers
    .venv-data/bin/python tools/build_corpus.py --vocabulary 8192 --output corpus
    fomoe-train run S.toml --set model.vocabulary=8192 --set trainer.data=$PWD/corpus/corpus.bin --local
"""

import argparse
import array
import gzip
import os
import pathlib
import sys
import sysconfig

END = "<|endoftext|>"
TEXT_SUFFIXES = {".py", ".txt", ".md", ".rst", ".html", ".c", ".h", ".cpp", ".hpp", ".toml", ".json"}


def files_of(sources):
    """Text files of the sources, each folder sorted by path, whatever order the file system gives."""
    for source in sources:
        path = pathlib.Path(source)
        if path.is_file():
            yield path
        for found in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else ():
            name = found.name.removesuffix(".gz")
            if pathlib.Path(name).suffix in TEXT_SUFFIXES or name in ("copyright", "changelog", "README"):
                yield found


def text_of(path):
    """The file's text; nothing where it cannot be read or is not UTF-8."""
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if path.name.endswith(".gz") else data).decode("utf-8")
    except (OSError, UnicodeDecodeError, EOFError):
        return ""


def documents(sources, max_bytes):
    total, seen = 0, set()
    for path in files_of(sources):
        text = text_of(path)
        if not text.strip() or hash_of(text) in seen:  # licences are installed hundreds of times
            continue
        seen.add(hash_of(text))
        size = len(text.encode())
        if total + size > max_bytes:
            return
        total += size
        yield text


def hash_of(text):
    import hashlib

    return hashlib.sha256(text.encode()).digest()


def write_whole(path, write):
    """Under a temporary name first: nobody sees half a file."""
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, metavar="DIR", help="output folder for the two files")
    parser.add_argument("--vocabulary", type=int, default=8192, help="number of tokens in the vocabulary (default: 8192)")
    parser.add_argument("--max-megabytes", type=float, default=40, help="maximum size of the text in MB (default: 40)")
    parser.add_argument("sources", nargs="*", help="files and folders to read (default: Python's standard library and /usr/share/doc)")
    arguments = parser.parse_args()
    if arguments.vocabulary < 257:
        parser.error(f"--vocabulary: got {arguments.vocabulary}; expected at least 257: one token for each byte, and {END}; "
                     "for example --vocabulary 8192")
    try:
        import tokenizers
    except ImportError:
        sys.exit("build_corpus: the Python package tokenizers is missing; install it, for example with pip install tokenizers")

    sources = arguments.sources or [sysconfig.get_paths()["stdlib"], "/usr/share/doc"]
    texts = list(documents(sources, arguments.max_megabytes * 1e6))
    if not texts:
        sys.exit(f"build_corpus: found no text in {' '.join(map(str, sources))}")
    tokenizer = tokenizers.ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(texts, vocab_size=arguments.vocabulary, special_tokens=[END], show_progress=False)
    if tokenizer.get_vocab_size() < arguments.vocabulary:
        print(f"build_corpus: the text has only {tokenizer.get_vocab_size()} distinct tokens", file=sys.stderr)
    end = tokenizer.token_to_id(END)
    ids = array.array("H" if arguments.vocabulary <= 65536 else "I")
    for encoding in tokenizer.encode_batch(texts):
        ids.extend(encoding.ids)
        ids.append(end)
    if sys.byteorder == "big":
        ids.byteswap()

    folder = pathlib.Path(arguments.output)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "tokenizer.json", lambda file: file.write(tokenizer.to_str().encode()))
    write_whole(folder / "corpus.bin", ids.tofile)
    print(f"{folder / 'corpus.bin'}: {len(ids):,} tokens of {len(texts):,} documents, vocabulary {arguments.vocabulary}")


if __name__ == "__main__":
    main()
