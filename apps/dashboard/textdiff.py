"""Expected against actual, line by line, with the words that differ marked inside the lines.

Pure. Texts longer than the limits are compared by whole lines or not at all: a page never waits for a comparison.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["same", "del", "add"]

MAX_CHARS = 20_000
MAX_LINES = 400
MAX_WORDS = 600
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a line; `marked` when it is not in the other text."""

    text: str
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the comparison with its number in the text it is from."""

    kind: Kind
    number: int
    pieces: tuple[Piece, ...]


def compare(expected: str, actual: str) -> list[Line] | None:
    """The lines of both texts, `del` from the expected and `add` from the actual one; None when they are too long."""
    if len(expected) > MAX_CHARS or len(actual) > MAX_CHARS:
        return None
    before, after = expected.splitlines() or [""], actual.splitlines() or [""]
    if len(before) > MAX_LINES or len(after) > MAX_LINES:
        return None
    lines: list[Line] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            lines += [Line("same", j + 1, (Piece(after[j]),)) for j in range(j1, j2)]
            continue
        gone, come = _words(before[i1:i2], after[j1:j2])
        lines += [Line("del", i1 + n + 1, pieces) for n, pieces in enumerate(gone)]
        lines += [Line("add", j1 + n + 1, pieces) for n, pieces in enumerate(come)]
    return lines


def _words(before: list[str], after: list[str]) -> tuple[list[tuple[Piece, ...]], list[tuple[Piece, ...]]]:
    """The pieces of changed lines; whole lines are marked when they have nothing in common or too many words."""
    old, new = "\n".join(before), "\n".join(after)
    old_words, new_words = _WORDS.findall(old), _WORDS.findall(new)
    whole = not before or not after or max(len(old_words), len(new_words)) > MAX_WORDS
    if not whole:
        matcher = difflib.SequenceMatcher(None, old_words, new_words, autojunk=False)
        whole = matcher.ratio() < 0.3
    if whole:
        return [(Piece(line, marked=True),) for line in before], [(Piece(line, marked=True),) for line in after]
    gone: list[Piece] = []
    come: list[Piece] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        gone.append(Piece("".join(old_words[i1:i2]), tag != "equal"))
        come.append(Piece("".join(new_words[j1:j2]), tag != "equal"))
    return _split(gone), _split(come)


def _split(pieces: list[Piece]) -> list[tuple[Piece, ...]]:
    lines: list[list[Piece]] = [[]]
    for piece in pieces:
        first, *rest = piece.text.split("\n")
        if first:
            lines[-1].append(Piece(first, piece.marked))
        for text in rest:
            lines.append([Piece(text, piece.marked)] if text else [])
    return [tuple(line) for line in lines]
