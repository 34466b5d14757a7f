"""Read a judge's answer: a rating for certain, or the reason why there is none.

Nothing is guessed: a rating outside 0-10 is not clamped, one on another scale is not converted, and of two verdicts
neither is taken. What would be read anew when asked again (a reply cut by the token limit) is refused even when its
beginning looks whole.
"""

from __future__ import annotations

import ast
import json
import math
import re
from dataclasses import dataclass
from typing import Any

from apps.scorers.texts import cut, storable

LOWEST, HIGHEST = 0.0, 10.0
# Raw answers are kept for the person who looks into a skip, not in full.
RAW_MOST = 4_000
JUSTIFICATION_MOST = 20_000
# No verdict is this long; bounds what reading one can cost.
_ANSWER_MOST = 100_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """A rating from 0 to 10 with what the judge wrote about it ("" when nothing)."""

    rating: float
    justification: str


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why an answer holds no rating; a clause that follows "the judge's answer could not be used:"."""

    reason: str


_FENCE = re.compile(r"```[a-zA-Z0-9_-]*[ \t]*\n?(.*?)```", re.DOTALL)
_THINKING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
# Of the whole rating text: a number, or one out of ten. A comma is a decimal sign: no scale of ours has thousands.
_RATING = re.compile(
    r"(-?\d{1,9}(?:[.,]\d{1,9})?)(?:\s*(?:/|out of|of)\s*(\d{1,9}(?:[.,]0+)?))?", re.IGNORECASE | re.ASCII
)
# The whole of an answer in plain lines.
_LINES = re.compile(
    r"[*_#\s]{0,9}(?:overall |final )?rating[*_\s]{0,9}[:=][*_\s]{0,9}(?P<rating>[^\n]{1,40}?)[*_ \t]{0,9}"
    r"(?:\n[*_#\s]{0,9}(?:justification|reasoning|reason|explanation)[*_\s]{0,9}[:=][*_\s]{0,9}(?P<why>.*))?",
    re.IGNORECASE | re.DOTALL,
)
_RATING_WORD = re.compile(r"\brating[*_\"'\s]*[:=]", re.IGNORECASE)
_JSON_LIKE = re.compile(r"\{\s*[\"'}]")
_WHY_KEYS = ("justification", "reasoning", "reason", "explanation")


class _Refused(ValueError):
    pass


def parse_verdict(text: str | None, finish_reason: str | None = None) -> Verdict | Unusable:
    """The verdict in a judge's answer; `finish_reason` is the gateway's. Never raises."""
    if finish_reason == "length":
        return Unusable("it was cut off at the token limit")
    if finish_reason == "content_filter":
        return Unusable("the provider's content filter stopped it")
    if text is None or not text.strip():
        return Unusable("it is empty")
    if len(text) > _ANSWER_MOST:
        return Unusable(f"it is longer than {_ANSWER_MOST:,} characters")
    body = text.strip()
    if thinking := _THINKING.match(body):
        body = body[thinking.end() :].strip()
    if not body:
        return Unusable("it is empty but for its thinking")
    try:
        found = _objects(body)
        if len(found) > 1:
            raise _Refused("it holds more than one JSON object")
        if found:
            return _of_object(found[0])
        return _of_lines(body)
    except _Refused as error:
        return Unusable(str(error))


def _of_object(value: dict[str, Any]) -> Verdict:
    keys = [key for key in value if isinstance(key, str) and key.strip().lower() == "rating"]
    if not keys:
        raise _Refused("its JSON has no rating")
    if len(keys) > 1:
        raise _Refused("its JSON has more than one rating")
    rating = _rating(value[keys[0]])
    lowered = {key.strip().lower(): item for key, item in value.items() if isinstance(key, str)}
    why = next((lowered[key] for key in _WHY_KEYS if lowered.get(key) is not None), "")
    return Verdict(rating, _text(why if isinstance(why, str) else json.dumps(why, ensure_ascii=False)))


def _of_lines(text: str) -> Verdict:
    plain = _FENCE.sub(r"\1", text).strip()
    if _RATING.fullmatch(plain):
        return Verdict(_rating(plain), "")
    match = _LINES.fullmatch(plain)
    if match is None or _RATING_WORD.search(match["why"] or ""):
        raise _Refused("it holds no JSON object with a rating")
    return Verdict(_rating(match["rating"]), _text(match["why"] or ""))


def _text(text: str) -> str:
    return cut(storable(text.strip()), JUSTIFICATION_MOST)


def _rating(value: object) -> float:
    if isinstance(value, bool) or value is None:
        raise _Refused(f"its rating is {json.dumps(value)}, not a number")
    if isinstance(value, str):
        return _rating_in_words(value)
    if not isinstance(value, int | float):
        raise _Refused("its rating is not a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise _Refused("its rating is not a number")
    return _in_range(value)


def _rating_in_words(text: str) -> float:
    match = _RATING.fullmatch(text.strip())
    if match is None:
        raise _Refused(f"its rating {_quoted(text)} is not a plain number")
    if match[2] is not None and float(match[2].replace(",", ".")) != HIGHEST:
        raise _Refused(f"its rating {_quoted(text)} is on another scale than 0-10")
    return _in_range(float(match[1].replace(",", ".")))


def _in_range(value: float) -> float:
    if not LOWEST <= value <= HIGHEST:
        shown = f"{value:g}" if isinstance(value, float) or abs(value) < 10**9 else "a very large number"
        raise _Refused(f"its rating {shown} is outside 0-10")
    return float(value)


def _quoted(text: str) -> str:
    cut = text if len(text) <= 40 else text[:39] + "…"
    return json.dumps(cut, ensure_ascii=False)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen = dict(pairs)
    if len(seen) != len(pairs):
        raise _Refused("its JSON says one key twice")
    return seen


def _constant(name: str) -> Any:
    raise _Refused(f"its JSON holds {name}")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant, strict=False)


def _objects(text: str) -> list[dict[str, Any]]:
    """The top-level objects of a text. An object that begins but cannot be read refuses the whole answer: an inner part
    of it, or a later one, may not be what the judge meant."""
    found: list[dict[str, Any]] = []
    begins = _JSON_LIKE.search(text)
    while begins is not None:
        at = begins.start()
        try:
            value, end = _DECODER.raw_decode(text, at)
        except RecursionError:
            raise _Refused("its JSON is nested too deep") from None
        except _Refused:
            raise
        except ValueError:
            value, end = _lenient(text, at)
        found.append(value)
        if len(found) > 1:
            break
        begins = _JSON_LIKE.search(text, end)
    return found


def _lenient(text: str, start: int) -> tuple[dict[str, Any], int]:
    """An object with the two slips that leave no doubt: a comma before a closing bracket, or Python's quotes."""
    end = _closing(text, start)
    if end is None:
        raise _Refused("its JSON is cut off or broken")
    written = text[start:end]
    repaired = _without_trailing_commas(written)
    try:
        value, stop = _DECODER.raw_decode(repaired)
        if stop == len(repaired):
            return value, end
    except _Refused:
        raise
    except (ValueError, RecursionError):
        pass  # not JSON with a slip; perhaps Python's spelling
    if len(written) <= RAW_MOST * 4 and written.isprintable():
        try:
            tree = ast.parse(written, mode="eval").body
            keys = (
                [key.value for key in tree.keys if isinstance(key, ast.Constant)] if isinstance(tree, ast.Dict) else []
            )
            value = ast.literal_eval(tree)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            raise _Refused("its JSON is broken") from None
        if isinstance(value, dict):
            if len(keys) != len(value):
                raise _Refused("its JSON says one key twice")
            return value, end
    raise _Refused("its JSON is broken")


def _closing(text: str, start: int) -> int | None:
    """Where the object that opens at `start` ends, quotes of both kinds respected."""
    depth = 0
    quote = ""
    index = start
    while index < len(text):
        char = text[index]
        if quote:
            if char == "\\":
                index += 1
            elif char == quote:
                quote = ""
        elif char == '"' or (char == "'" and text[index - 1] in "{[:, \n\t"):
            quote = char
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
            if depth == 0:
                return index + 1
        index += 1
    return None


def _without_trailing_commas(text: str) -> str:
    out: list[str] = []
    inside = False
    index = 0
    while index < len(text):
        char = text[index]
        if inside and char == "\\":
            out.append(text[index : index + 2])
            index += 2
            continue
        if char == '"':
            inside = not inside
        if not inside and char == "," and re.match(r"\s*[}\]]", text[index + 1 : index + 40]):
            index += 1
            continue
        out.append(char)
        index += 1
    return "".join(out)
