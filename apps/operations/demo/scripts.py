"""The demo's cast and texts, read from `fixtures/demo`: agents, what they are asked, what they do and answer.

Texts may hold `$names` of the pools in `pools.json`; one value is drawn for each conversation, so a story stays
coherent over its turns.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

import msgspec
from django.conf import settings


class Step(msgspec.Struct, forbid_unknown_fields=True):
    """One thing an agent does in a turn; the member that is set says what.

    `error` and `fallback` are how a tool fails, and what the agent answers then.
    """

    tool: str | None = None
    retrieve: str | None = None
    rerank: str | None = None
    embed: str | None = None
    memory: str | None = None
    guardrail: str | None = None
    think: str | None = None
    agent: str | None = None
    task: str | None = None
    parallel: list[Step] = []
    steps: list[Step] = []
    documents: list[str] = []
    input: Any = None
    output: Any = None
    error: str | None = None
    fallback: str | None = None


class Turn(msgspec.Struct, forbid_unknown_fields=True):
    """A question, what is done about it, and the answer."""

    user: str
    steps: list[Step]
    answer: str


class Scenario(msgspec.Struct, forbid_unknown_fields=True):
    """One conversation."""

    title: str
    turns: list[Turn]


class AgentScript(msgspec.Struct, forbid_unknown_fields=True):
    """One agent: how it is built, how busy it is, and its conversations.

    `share` is its part of the traffic; `slow` and `fast` stretch latencies; `cached` and `stream` are shares of calls
    with prompt caching and of streamed calls; `flat` agents record no child spans; `imported` ones come from a
    conversation export, days old and without tokens. `names` says how its framework calls the spans.
    """

    name: str
    framework: str | None
    models: dict[str, float]
    share: float
    system: str
    prompt: str
    prompt_tokens: int
    names: dict[str, str]
    scenarios: list[Scenario]
    slow: float = 1.0
    fast: float = 1.0
    cached: float = 0.0
    stream: float = 0.0
    flat: bool = False
    imported: bool = False


def folder() -> Path:
    """Where the demo's fixtures are, in a checkout and in an installed package alike."""
    return Path(settings.BASE_DIR) / "fixtures" / "demo"


@cache
def cast() -> tuple[AgentScript, ...]:
    """All agents, in the order of their file names."""
    decoder = msgspec.json.Decoder(AgentScript)
    return tuple(decoder.decode(path.read_bytes()) for path in sorted((folder() / "agents").glob("*.json")))


@cache
def pools() -> dict[str, list[str]]:
    """Values to draw from, by name."""
    return msgspec.json.decode((folder() / "pools.json").read_bytes(), type=dict[str, list[str]])


class Wording:
    """One drawn value for each pool, put into texts and JSON values."""

    def __init__(self, rng: random.Random) -> None:
        self.values = {name: rng.choice(choices) for name, choices in pools().items()}

    def text(self, text: str) -> str:
        """The text with its `$names` filled in."""
        return Template(text).safe_substitute(self.values)

    def value(self, value: Any) -> Any:
        """The same for every string inside a JSON value."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {key: self.value(item) for key, item in value.items()}
        return value
