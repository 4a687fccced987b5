"""Loss of n-gram models: what a model learns that only counts short contexts, as a yardstick for the trained models.

Interpolated absolute discounting (Ney, Essen and Kneser 1994) with one discount per order, n1 / (n1 + 2 n2), where n1 and n2 are the
numbers of n-grams that occur once and twice. Order 0 is the uniform distribution.
"""

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
