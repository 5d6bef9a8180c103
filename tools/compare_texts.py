"""Compare the texts of definitions with the documentation of the installed `onnx` and onnxruntime.

python tools/compare_texts.py [OPERATOR ...]    print sentences that are copies; exit with 1 if there are any

A text may share neither a sentence of 8 or more words nor a run of 10 words with any of their texts. Case,
punctuation and markup do not count; formulas are left out.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from onnx import defs
from onnxruntime.capi import onnxruntime_pybind11_state as state

from opshift.registry.descriptions import texts_of
from opshift.registry.models import Operator
from opshift.registry.registry import default_registry

SENTENCE_WORDS: Final = 8
"""Minimum number of words of a compared sentence; short ones, such as 'The input tensor.', may be equal."""
RUN_WORDS: Final = 10

Words = tuple[str, ...]

_FORMULA = re.compile(r"`[^`]*[^\w`][^`]*`")
_SENTENCE_END = re.compile(r"[.!?;:]\s+|\n\s*\n|\n\s*[*-] ")
_WORD = re.compile(r"\w+")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if a text shares too much with `onnx`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("operators", nargs="*", metavar="OPERATOR", help="names of operators (default: all)")
    names = parser.parse_args(arguments).operators
    operators = [each for each in default_registry().operators() if not names or each.name in names]
    found = [problem for operator in operators for problem in copies_in(operator)]
    print(*found, f"{len(operators)} operators, {len(found)} copies", sep="\n")
    return 1 if found else 0


def copies_in(operator: Operator) -> Iterator[str]:
    """Yield each place in the texts of an operator that copies a published text."""
    seen: set[tuple[tuple[str, str], str]] = set()
    for version in operator.versions:
        for key, text in texts_of(version).items():
            if (key, text) not in seen:
                seen.add((key, text))
                yield from (f"{version.id} {' '.join(key).strip()}: {copy}" for copy in copies_of(text))


def copies_of(text: str) -> Iterator[str]:
    """Yield each copied sentence of a text; without one, the first copied run of words."""
    sentences, runs = _published_sentences_and_runs()
    equal = [words for words in _sentences_of(text) if words in sentences]
    shared = [run for run in _runs_of_words(text) if run in runs]
    yield from map(" ".join, equal or shared[:1])


@cache
def _published_sentences_and_runs() -> tuple[frozenset[Words], frozenset[Words]]:
    """Return all sentences and all runs of words of the published texts."""
    texts = set(_published_texts())
    return (
        frozenset(sentence for text in texts for sentence in _sentences_of(text)),
        frozenset(run for text in texts for run in _runs_of_words(text)),
    )


def _published_texts() -> Iterator[str]:
    for schema in (*defs.get_all_schemas_with_history(), *state.get_all_operator_schema()):
        yield schema.doc or ""
        for each in (*schema.inputs, *schema.outputs, *schema.attributes.values(), *schema.type_constraints):
            yield each.description


def _words_of(text: str) -> Words:
    return tuple(_WORD.findall(_FORMULA.sub(" ", text).lower()))


def _sentences_of(text: str) -> Iterator[Words]:
    words = map(_words_of, _SENTENCE_END.split(text))
    return (each for each in words if len(each) >= SENTENCE_WORDS)


def _runs_of_words(text: str) -> Iterator[Words]:
    words = _words_of(text)
    return (words[start : start + RUN_WORDS] for start in range(len(words) - RUN_WORDS + 1))


if __name__ == "__main__":
    sys.exit(main())
