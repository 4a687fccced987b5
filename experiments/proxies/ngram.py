#!/usr/bin/env python3
"""Loss of n-gram models: what a model learns that only counts short contexts, as a yardstick for the trained models.

    .cache/corpus-venv/bin/python experiments/proxies/ngram.py --tokens 3145728     counted on as many tokens as a proxy is trained on

Interpolated absolute discounting (Ney, Essen and Kneser 1994) with one discount per order, n1 / (n1 + 2 n2), where n1 and n2 are the
numbers of n-grams that occur once and twice. Order 0 is the uniform distribution.
"""

import argparse
import pathlib

import numpy


def codes(arrays, order, vocabulary):
    """The n-grams of each array as numbers in base `vocabulary`; none crosses arrays. Shape: [number of n-grams]."""
    assert vocabulary**order < 2**63
    parts = []
    for array in arrays:
        count = len(array) - order + 1
        code = numpy.zeros(count, dtype=numpy.int64)
        for offset in range(order):
            code = code * vocabulary + array[offset:offset + count]
        parts.append(code)
    return numpy.concatenate(parts)


def counted(table, counts, wanted):
    """The counts of the wanted codes; 0 where a code does not occur."""
    at = numpy.minimum(numpy.searchsorted(table, wanted), len(table) - 1)
    return numpy.where(table[at] == wanted, counts[at], 0)


def losses(train, validation, vocabulary, largest):
    """{order: mean cross-entropy in nats of the validation tokens that have largest - 1 tokens before them}."""
    context = codes(validation, largest, vocabulary)  # the last `order` digits are an n-gram of that order
    probability = numpy.full(len(context), 1 / vocabulary)
    result = {}
    for order in range(1, largest + 1):
        table, counts = numpy.unique(codes(train, order, vocabulary), return_counts=True)
        once, twice = numpy.count_nonzero(counts == 1), numpy.count_nonzero(counts == 2)
        discount = once / (once + 2 * twice) if once else 0.0
        prefixes, starts = numpy.unique(table // vocabulary, return_index=True)
        totals = numpy.add.reduceat(counts, starts)
        kinds = numpy.diff(numpy.append(starts, len(table)))
        wanted = context % vocabulary**order
        total = counted(prefixes, totals, wanted // vocabulary)
        kind = counted(prefixes, kinds, wanted // vocabulary)
        count = counted(table, counts, wanted)
        seen = total > 0
        safe = numpy.where(seen, total, 1)
        higher = numpy.maximum(count - discount, 0) / safe + discount * kind / safe * probability
        probability = numpy.where(seen, higher, probability)
        result[order] = float(-numpy.log(probability).mean())
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent / "corpus", metavar="DIR")
    parser.add_argument("--tokens", type=int, metavar="N", help="count on the same share of each domain, N tokens in all (default: all)")
    parser.add_argument("--vocabulary", type=int, default=1024)
    parser.add_argument("--order", type=int, default=4, help="largest n (default: 4)")
    arguments = parser.parse_args()
    train, validation = ([numpy.fromfile(file, dtype="<u2") for file in sorted((arguments.corpus / part).glob("*/*.bin"))]
                         for part in ("train", "validation"))
    share = min(1, (arguments.tokens or 2**62) / sum(map(len, train)))
    found = losses([ids[:int(len(ids) * share)] for ids in train], validation, arguments.vocabulary, arguments.order)
    for n, loss in found.items():
        print(f"{n}-grams: {loss:.4f} nats, perplexity {numpy.exp(loss):.2f}")


if __name__ == "__main__":
    main()
