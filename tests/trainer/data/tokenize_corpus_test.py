"""Tests tools/tokenize_corpus.py with local texts, and that fomoe-train reads its folder (if FOMOE_TRAIN names it)."""

import array
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCENARIO = ROOT / "experiments/scenarios/tiny-training.toml"


# Stand-ins for the packages, which are not installed here and would need the internet.
DATASETS = """
def load_dataset(path, name, split, streaming):
    assert (path, name, split, streaming) == ("some/data", "en", "validation", True)
    return iter([{"text": "ba", "url": "x"}, {"text": "ab", "url": "y"}])
"""
TOKENIZERS = """
class Tokenizer:
    @staticmethod
    def from_pretrained(name):
        assert name == "some/tokenizer"
        return Tokenizer()
    def get_vocab_size(self): return 70000
    def token_to_id(self, token): return 69999 if token == "<|endoftext|>" else None
    def encode_batch(self, texts, add_special_tokens):
        assert not add_special_tokens
        return [type("Encoding", (), {"ids": [ord(c) - ord("a") for c in text]}) for text in texts]
"""


def tokenize(*arguments, packages=""):
    return subprocess.run([sys.executable, ROOT / "tools/tokenize_corpus.py", *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(packages)})


def ids(path, code="H"):
    values = array.array(code)
    values.frombytes(path.read_bytes())
    return list(values)


class TokenizeCorpus(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        texts = self.folder / "texts"
        (texts / "sub").mkdir(parents=True)
        (texts / "b.txt").write_text("né")
        (texts / "a.jsonl").write_text('{"text": "ab"}\n{"text": ""}\n{"text": "c"}\n')
        with gzip.open(texts / "sub/c.jsonl.gz", "wt") as file:
            file.write(json.dumps({"text": "d"}) + "\n")
        (texts / "ignored.md").write_text("x")
        self.texts = texts

    def tokenized(self, *arguments):
        ended = tokenize(self.texts, "--tokenizer", "bytes", "--output", self.folder / "data", *arguments)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout

    def test_documents_in_order_with_an_end_token_each(self):
        said = self.tokenized("--domain", "web")
        self.assertIn("11 tokens of 4 documents in 1 files; set model.vocabulary=257 or larger", said)
        self.assertEqual(ids(self.folder / "data/web/00000.bin"), [97, 98, 256, 99, 256, 110, 195, 169, 256, 100, 256])

    def test_files_of_a_given_size_have_the_same_tokens(self):
        self.tokenized("--shard-megabytes", "8e-6")  # four tokens of two bytes
        files = sorted((self.folder / "data").iterdir())
        self.assertEqual([file.name for file in files], ["00000.bin", "00001.bin", "00002.bin"])
        self.assertEqual([token for file in files for token in ids(file)], [97, 98, 256, 99, 256, 110, 195, 169, 256, 100, 256])

    def test_a_part_of_the_documents_and_wide_ids(self):
        self.tokenized("--skip", "2", "--documents", "2", "--vocabulary", "70000")  # of the empty one and "c"
        self.assertEqual(ids(self.folder / "data/00000.bin", "I"), [99, 256, 110, 195, 169, 256])

    def test_a_data_set_and_a_tokenizer_of_the_hub(self):
        (self.folder / "datasets.py").write_text(DATASETS)
        (self.folder / "tokenizers.py").write_text(TOKENIZERS)
        hub = ["--dataset", "some/data", "--config", "en", "--split", "validation", "--tokenizer", "some/tokenizer"]
        ended = tokenize(*hub, "--output", self.folder / "data", packages=self.folder)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("set model.vocabulary=70000 or larger\n", ended.stdout)
        self.assertEqual(ids(self.folder / "data/00000.bin", "I"), [1, 0, 69999, 0, 1, 69999])
        for more, expected in [(["--text-field", "body"], "expected one of text, url;"), (["--end-token", "</s>"], "is no token of"),
                               (["--vocabulary", "9"], "for example 70000")]:
            ended = tokenize(*hub, *more, "--output", self.folder / "other", packages=self.folder)
            self.assertEqual(ended.returncode, 2)
            self.assertIn(expected, ended.stderr)

    def test_sources_are_read_or_what_was_left_out_is_said(self):
        (self.texts / "sub/code.py").write_text("x = 1")
        (self.texts / "sub/more.py").write_text("y")
        (self.texts / "README").write_text("r")
        (self.texts / "b.txt").write_bytes(b"n\xe9")  # Latin-1
        (self.texts / "z.txt").write_bytes(b"\0\1")
        out = self.folder / "data"
        ended = tokenize(self.texts, "--tokenizer", "bytes", "--output", out)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(ended.stderr.splitlines(), [
            ("tokenize_corpus: left out 4 files that are not .txt, .jsonl, .txt.gz, .jsonl.gz: 2 .py, 1 (no suffix), 1 .md; "
             "--suffix .py reads such files"),
            "tokenize_corpus: left out 1 files that are no text",
            "tokenize_corpus: 1 files are not UTF-8; what could not be read became U+FFFD",
            "tokenize_corpus: left out 1 documents without text"])
        ended = tokenize(self.texts, "--suffix", ".py", "--suffix", ".md", "--tokenizer", "bytes", "--output", out, "--domain", "all")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("tokenize_corpus: left out 1 files that are not .txt, .jsonl, .txt.gz, .jsonl.gz, .py, .md: 1 (no suffix)", ended.stderr)
        text = bytes(min(token, 255) for token in ids(out / "all/00000.bin"))
        self.assertEqual(text.split(b"\xff")[:-1], [b"ab", b"c", b"n\xef\xbf\xbd", b"x", b"d", b"x = 1", b"y"])

    def test_mistakes_are_one_line(self):
        self.tokenized()
        (self.texts / "a.jsonl").write_text("no JSON\n")
        for arguments, expected in [
            ([self.texts, "--output", self.folder / "data"], "already has .bin files"),
            ([self.texts, "--output", self.folder / "other"], "a.jsonl:1: got a line without text"),
            ([self.folder / "nothing", "--output", self.folder / "other"], "got no file or folder"),
            ([self.texts / "sub", "--skip", 9, "--output", self.folder / "other"], "got no documents"),
            ([self.texts, "--suffix", "py", "--output", self.folder / "other"], "--suffix: got py; expected the end of file names"),
            (["--output", self.folder / "other"], "expected --dataset or local files"),
        ]:
            ended = tokenize("--tokenizer", "bytes", *arguments)
            self.assertEqual(ended.returncode, 2)
            self.assertEqual(ended.stderr.count("\n"), 1)
            self.assertIn(expected, ended.stderr)

    @unittest.skipUnless("FOMOE_TRAIN" in os.environ, "FOMOE_TRAIN does not name fomoe-train")
    def test_a_run_with_domains_and_validation_data(self):
        (self.texts / "a.jsonl").write_text(json.dumps({"text": "The quick brown fox. " * 400}) + "\n")
        for domain in ("a", "b", "c", "d"):
            self.tokenized("--domain", domain)
        settings = {"model.vocabulary": 257, "workload.tokens": 65536, "trainer.data": self.folder / "data",
                    "trainer.data_split": "domain", "trainer.validation_data": self.folder / "data/a/00000.bin",
                    "trainer.validation_sequences": 4, "trainer.device": "cpu"}
        report = self.folder / "run.json"
        command = [os.environ["FOMOE_TRAIN"], "run", SCENARIO, "--in-turn", "--output", report]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        ended = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertNotIn(str(self.folder), report.read_text())
        eight = subprocess.run([*command, "--set", "platform.sites=8"], capture_output=True, text=True)
        self.assertEqual(eight.returncode, 2)
        self.assertIn("trainer.data_split: got \"domain\" with 4 domains for 8 sites; expected", eight.stderr)


if __name__ == "__main__":
    unittest.main()
