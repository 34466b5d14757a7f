"""Ask a model for text, or for a value of a given shape."""

from __future__ import annotations

import json
import logging
import re
import time
from dataclasses import dataclass
from typing import Literal, TypeVar

import msgspec

from apps.core.times import now_ms
from apps.llm.gateway import loop
from apps.llm.gateway.budget import take_judge_call
from apps.llm.gateway.errors import ModelUnavailable, UnusableAnswer
from apps.llm.gateway.routing import Route, route
from apps.llm.gateway.wire import RawAnswer, ask
from apps.llm.models import ModelCall
from apps.llm.pricing import cost, price_of
from apps.llm.selectors import default_judge_model
from apps.projects.models import Project

logger = logging.getLogger(__name__)

Purpose = Literal["judge", "draft", "synthesis", "variants", "analysis", "pairwise", "topics", "other"]
# Calls of these purposes count against the daily judge quota.
_JUDGING = frozenset({"judge", "analysis", "pairwise"})

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """A model's answer. Cache counts are part of `input_tokens`; `cost_usd` is None for a model without a price."""

    text: str
    model: str
    provider: str
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cost_usd: float | None
    finish_reason: str | None
    latency_ms: float


def chat(
    *,
    project: Project,
    prompt: str,
    purpose: Purpose,
    model: str | None = None,
    system: str | None = None,
    timeout_s: float = 60.0,
    max_tokens: int | None = None,
    temperature: float | None = 0.0,
) -> ChatAnswer:
    """The model's answer to one prompt. `model` None is the default judge model.

    Raises ModelUnavailable, whose text is what a person reads: no key (names the variable), quota used up (names it),
    unknown model, provider refusal, network failure, or no answer within `timeout_s` seconds, retries included.
    Every call that was tried leaves a ModelCall row; its texts are stored nowhere.
    """
    model = model or default_judge_model()
    at = route(model)
    if purpose in _JUDGING:
        take_judge_call(project)
    started = time.monotonic()
    try:
        raw = loop.run(
            lambda: ask(
                at,
                system=system,
                prompt=prompt,
                temperature=temperature,
                max_tokens=max_tokens,
                timeout_s=timeout_s,
            ),
            timeout_s=timeout_s,
        )
    except TimeoutError:
        problem = ModelUnavailable(
            f"{at.label} did not answer {model} within {timeout_s:g} s.", "timeout", retryable=True
        )
        _record(project, purpose, at, started, failure=problem.reason)
        raise problem from None
    except ModelUnavailable as error:
        _record(project, purpose, at, started, failure=error.reason)
        raise
    spent = _cost(at, raw)
    _record(project, purpose, at, started, raw=raw, cost_usd=spent)
    return ChatAnswer(
        text=raw.text,
        model=model,
        provider=at.provider,
        input_tokens=raw.input_tokens,
        output_tokens=raw.output_tokens,
        cache_read_tokens=raw.cache_read_tokens,
        cache_write_tokens=raw.cache_write_tokens,
        cost_usd=spent,
        finish_reason=raw.finish_reason,
        latency_ms=(time.monotonic() - started) * 1000,
    )


def structured(
    *,
    project: Project,
    prompt: str,
    purpose: Purpose,
    schema: type[T],
    model: str | None = None,
    system: str | None = None,
    timeout_s: float = 60.0,
    max_tokens: int | None = None,
) -> tuple[T, ChatAnswer]:
    """A value of `schema` (a msgspec.Struct) from the model's JSON answer; asked once more when it is unusable.

    Raises ModelUnavailable as chat() does, and UnusableAnswer with the last raw text after the second bad answer.
    """
    question = prompt
    for attempt in (1, 2):
        answer = chat(
            project=project,
            prompt=question,
            purpose=purpose,
            model=model,
            system=system,
            timeout_s=timeout_s,
            max_tokens=max_tokens,
        )
        try:
            return decode_answer(answer.text, schema), answer
        except ValueError as error:
            reason = str(error)
            if answer.finish_reason == "length":
                reason = f"the answer was cut off at the token limit ({reason})"
            if attempt == 2:
                raise UnusableAnswer(reason, answer.text) from None
            question = f"{prompt}\n\nYour last answer could not be used: {reason}. Answer with the JSON object alone."
    raise AssertionError("unreachable")


# Only what can begin an object is decoded: each failed try costs as much as the text is long.
_OBJECT = re.compile(r"\{\s*[\"}]")
_FENCE = re.compile(r"^\s*```[a-zA-Z0-9_-]*\s*\n(.*?)\n?\s*```\s*$", re.DOTALL)


def decode_answer(text: str, schema: type[T]) -> T:
    """The one JSON object of an answer: bare, fenced, or with prose around it. Raises ValueError saying what is wrong.

    Two objects are ambiguous and refused, so that an object quoted from the material is never taken for the answer.
    """
    fenced = _FENCE.match(text)
    body = (fenced.group(1) if fenced else text).strip()
    if not body:
        raise ValueError("the answer is empty")
    found = _objects(body)
    if not found:
        raise ValueError("the answer holds no JSON object")
    if len(found) > 1:
        raise ValueError("the answer holds more than one JSON object")
    try:
        return msgspec.convert(found[0], schema, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(f"the JSON does not fit: {error}") from None


def _objects(text: str) -> list[object]:
    """Every top-level JSON object in a text."""
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    found: list[object] = []
    begins = _OBJECT.search(text)
    while begins is not None:
        try:
            value, end = decoder.raw_decode(text, begins.start())
        except (ValueError, RecursionError):
            end = begins.start() + 1
        else:
            found.append(value)
        begins = _OBJECT.search(text, end)
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _cost(at: Route, raw: RawAnswer) -> float | None:
    price = price_of(at.model, now_ms())
    if price is None or raw.input_tokens is None:
        return None
    return cost(
        price, raw.input_tokens, raw.output_tokens or 0, raw.cache_read_tokens or 0, raw.cache_write_tokens or 0
    )


def _record(
    project: Project,
    purpose: str,
    at: Route,
    started: float,
    *,
    raw: RawAnswer | None = None,
    cost_usd: float | None = None,
    failure: str = "",
) -> None:
    ModelCall.objects.create(
        project=project,
        purpose=purpose,
        model=at.model,
        provider=at.provider,
        latency_ms=(time.monotonic() - started) * 1000,
        input_tokens=raw.input_tokens if raw else None,
        output_tokens=raw.output_tokens if raw else None,
        cache_read_tokens=raw.cache_read_tokens if raw else None,
        cache_write_tokens=raw.cache_write_tokens if raw else None,
        cost_usd=cost_usd,
        attempts=raw.attempts if raw else 1,
        failure=failure[:300],
    )
