"""How alike two texts are, without a model: Jaccard, BLEU, ROUGE-L, and the cosine of two vectors.

Pure functions from 0 (nothing shared) to 1 (the same). BLEU follows the usual sentence BLEU (13a tokens, exponential
smoothing, effective order) and ROUGE-L its F1 over words; both also split scripts that are written without spaces, where
the Latin rules would see one long word.
"""

from __future__ import annotations

import functools
import math
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

# Han, kana, Thai, Lao, Khmer, Burmese: no spaces between words, so each character counts as a token.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
# ROUGE-L compares at most this many tokens of each text: its cost grows with their product.
LCS_MOST_TOKENS = 20_000
_MAX_ORDER = 4


@functools.lru_cache(maxsize=1)
def _token_pattern() -> re.Pattern[str]:
    marks = "".join(_ranges(lambda char: unicodedata.category(char).startswith("M")))
    symbols = "".join(_ranges(lambda char: unicodedata.category(char) == "So"))
    return re.compile(rf"[{_UNSPACED}][{marks}]*|(?:(?![{_UNSPACED}_])[\w{marks}])+|[{symbols}]")


def _ranges(wanted: Callable[[str], bool]) -> list[str]:
    """Regex ranges of the characters that satisfy a predicate."""
    found: list[str] = []
    start: int | None = None
    for code in range(0x80, min(sys.maxunicode, 0x20000)):
        if wanted(chr(code)):
            start = code if start is None else start
        elif start is not None:
            found.append(f"{chr(start)}-{chr(code - 1)}")
            start = None
    return found


_ASCII_TOKEN = re.compile(r"[a-z0-9]+")


def tokens(text: str) -> list[str]:
    """The words of a text, case and width folded; single characters of scripts without spaces, and symbols (emoji)."""
    if text.isascii():
        return _ASCII_TOKEN.findall(text.lower())
    return _token_pattern().findall(unicodedata.normalize("NFKC", text).casefold())


def jaccard(left: str, right: str) -> float:
    """Shared tokens over all tokens of both texts."""
    if left.strip() == right.strip():
        return 1.0
    ours, theirs = set(tokens(left)), set(tokens(right))
    union = len(ours | theirs)
    return len(ours & theirs) / union if union else 0.0


def rouge_l(answer: str, reference: str) -> float:
    """F1 of the longest common subsequence of tokens, over the first 20,000 tokens of each."""
    if answer.strip() == reference.strip():
        return 1.0
    ours, theirs = tokens(answer)[:LCS_MOST_TOKENS], tokens(reference)[:LCS_MOST_TOKENS]
    common = _lcs(ours, theirs)
    return 2 * common / (len(ours) + len(theirs)) if common else 0.0


def _lcs(left: Sequence[str], right: Sequence[str]) -> int:
    """Length of the longest common subsequence, with one bit a token of `left` (Hyyrö's recurrence)."""
    places: dict[str, int] = {}
    for index, token in enumerate(left):
        places[token] = places.get(token, 0) | (1 << index)
    full = (1 << len(left)) - 1
    row = full
    for token in right:
        matches = row & places.get(token, 0)
        row = ((row + matches) | (row - matches)) & full
    return len(left) - row.bit_count()


_BLEU_RULES = [
    (re.compile(r"([\{-\~\[-\` -\&\(-\+\:-\@\/])"), r" \1 "),
    (re.compile(r"([^0-9])([\.,])"), r"\1 \2 "),
    (re.compile(r"([\.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
    (re.compile(rf"([{_UNSPACED}])"), r" \1 "),
]
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))


def _bleu_tokens(text: str) -> list[str]:
    line = text.rstrip().replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, char in _ENTITIES:
        line = line.replace(entity, char)
    line = f" {line} "
    for pattern, replacement in _BLEU_RULES:
        line = pattern.sub(replacement, line)
    return line.split()


def bleu(answer: str, reference: str) -> float:
    """Sentence BLEU of up to four-token sequences, with a penalty for answers shorter than the reference."""
    if answer.strip() == reference.strip():
        return 1.0
    ours, theirs = _bleu_tokens(answer), _bleu_tokens(reference)
    if not ours or not theirs:
        return 0.0
    logs: list[float] = []
    smoothing = 1.0
    shared_any = False
    for order in range(1, _MAX_ORDER + 1):
        total = len(ours) - order + 1
        if total <= 0:
            break
        shared = (_ngrams(ours, order) & _ngrams(theirs, order)).total()
        shared_any = shared_any or shared > 0
        if shared == 0:
            smoothing *= 2
            logs.append(math.log(1 / (smoothing * total)))
        else:
            logs.append(math.log(shared / total))
    if not shared_any:
        return 0.0
    penalty = min(0.0, 1 - len(theirs) / len(ours))
    return min(1.0, math.exp(penalty + sum(logs) / len(logs)))


def _ngrams(words: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[start:] for start in range(order)), strict=False))


def cosine(left: np.ndarray, right: np.ndarray) -> float:
    """Cosine of two vectors, kept within 0..1: vectors that point apart share nothing."""
    import numpy as np

    size = float(np.linalg.norm(left) * np.linalg.norm(right))
    if not size or not math.isfinite(size):
        return 0.0
    value = float(np.dot(left, right)) / size
    return 1.0 if value > 1 - 1e-6 else max(0.0, value)
