"""A month of traffic: when conversations happen, which go wrong, and the incident worth finding.

Everything is drawn from one seed and laid out backwards from a moment, so the same seed and moment give the same
rows. The shape: working hours are busy, weekends quiet, traffic grows over the month. Two days before the end the
payment provider is down for three hours in the afternoon: refunds time out in two agents at once.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from apps.core.times import from_ms, to_ms
from apps.operations.demo.scripts import AgentScript, Scenario, Wording, cast
from apps.operations.demo.traces import Mishap, Moment, TraceComposer
from apps.tracing.ingest.records import SpanIn

DAYS = 30
CONVERSATIONS_A_DAY = 30
# By hour of the day in UTC: nights are quiet, there is a dip at noon.
_HOURS = (2, 1, 1, 1, 2, 4, 8, 14, 22, 27, 28, 25, 19, 24, 28, 27, 24, 18, 13, 10, 8, 6, 4, 3)
_WEEKEND = 0.55
INCIDENT_DAYS_BEFORE = 2
INCIDENT_HOURS = (14, 17)
_INCIDENT_TOOL = "issue_refund"
_EVAL_RUNS_DAYS_BEFORE = (11, 4)
_EVAL_CASES = 18
_VERSIONS = ("2.3.0", "2.4.0", "2.4.1", "2.5.0")
_QUIET_MS = 20_000


@dataclass(frozen=True, slots=True)
class Trace:
    """The spans of one interaction, root first, and when it began."""

    start_ms: int
    spans: list[SpanIn]


def month(*, seed: int, end_ms: int, days: int = DAYS, daily: int = CONVERSATIONS_A_DAY) -> Iterator[Trace]:
    """All traces of the days before `end_ms`, day by day."""
    rng = random.Random(seed)
    today = from_ms(end_ms).replace(hour=0, minute=0, second=0, microsecond=0)
    for age in range(days - 1, -1, -1):
        day = today - timedelta(days=age)
        weight = (_WEEKEND if day.weekday() >= 5 else 1.0) * (1.15 - 0.3 * age / days) * rng.uniform(0.85, 1.15)
        starts = sorted(_starts(rng, to_ms(day), round(daily * weight)))
        if age == INCIDENT_DAYS_BEFORE:
            yield from _incident(rng, to_ms(day), end_ms)
        if age in _EVAL_RUNS_DAYS_BEFORE:
            yield from _evaluation_run(rng, to_ms(day), number=len(_EVAL_RUNS_DAYS_BEFORE) - age % 2)
        for start_ms in starts:
            script = _pick(rng)
            if script.imported and age == 0:
                continue
            yield from conversation(rng, script, start_ms, not_after_ms=end_ms - _QUIET_MS, progress=1 - age / days)
    # Something has always just happened, whatever the hour.
    for minutes in (52, 38, 21, 11, 4):
        script = _pick(rng)
        yield from conversation(rng, script, end_ms - minutes * 60_000, not_after_ms=end_ms, progress=1.0)


def conversation(
    rng: random.Random,
    script: AgentScript,
    start_ms: int,
    *,
    not_after_ms: int,
    progress: float = 1.0,
    scenario: Scenario | None = None,
    mishap: Mishap | None = None,
    source: str | None = None,
    extra: dict[str, str] | None = None,
) -> Iterator[Trace]:
    """The turns of one conversation, one trace each; turns that would begin too late are left out."""
    scenario = scenario or rng.choice(script.scenarios)
    wording = Wording(rng)
    model = rng.choices(list(script.models), list(script.models.values()))[0] if script.models else None
    prefix = "mw_" if script.imported else "eval_" if source else ""
    session_id = f"{prefix}{rng.getrandbits(64):016x}"
    version = _VERSIONS[min(len(_VERSIONS) - 1, int(progress * len(_VERSIONS)))]
    metadata = {"env": "production", "version": version, "userId": f"u_{rng.randint(1000, 4999)}"} | (extra or {})
    history: list[dict[str, str]] = []
    for turn in scenario.turns:
        if start_ms > not_after_ms:
            return
        moment = Moment(
            session_id=session_id,
            start_ms=start_ms,
            wording=wording,
            model=model,
            mishap=mishap or _mishap(rng),
            source=source,
            metadata=metadata,
            history=history,
        )
        composer = TraceComposer(rng, script, moment)
        spans = composer.compose(turn)
        yield Trace(start_ms, spans)
        if any(span.error for span in spans[:1]) or not history:
            return
        start_ms = int(composer.end_ms) + rng.randint(8_000, 180_000)


def _mishap(rng: random.Random) -> Mishap:
    kinds = (Mishap.NONE, Mishap.TOOL_FAILURE, Mishap.MODEL_ERROR, Mishap.EMPTY_ANSWER, Mishap.SLOW)
    return rng.choices(kinds, (0.905, 0.05, 0.012, 0.006, 0.027))[0]


def _pick(rng: random.Random) -> AgentScript:
    scripts = cast()
    return rng.choices(scripts, [script.share for script in scripts])[0]


def _starts(rng: random.Random, day_ms: int, count: int) -> Iterator[int]:
    for hour in rng.choices(range(24), _HOURS, k=count):
        yield day_ms + hour * 3_600_000 + rng.randrange(3_600_000)


def _incident(rng: random.Random, day_ms: int, end_ms: int) -> Iterator[Trace]:
    """Refund requests pile up while the payment provider is down."""
    affected = [
        (script, scenario)
        for script in cast()
        for scenario in script.scenarios
        if any(step.tool == _INCIDENT_TOOL for turn in scenario.turns for step in turn.steps)
    ]
    first, last = (day_ms + hour * 3_600_000 for hour in INCIDENT_HOURS)
    for start_ms in sorted(rng.randrange(first, last) for _ in range(26)):
        script, scenario = rng.choice(affected)
        yield from conversation(
            rng, script, start_ms, not_after_ms=end_ms, scenario=scenario, mishap=Mishap.TOOL_FAILURE
        )


def _evaluation_run(rng: random.Random, day_ms: int, number: int) -> Iterator[Trace]:
    """An offline evaluation of the support agent: listed apart, outside every KPI."""
    script = next(script for script in cast() if script.name == "support-concierge")
    run_id = f"run_{rng.getrandbits(48):012x}"
    start_ms = day_ms + 7 * 3_600_000
    for case in range(_EVAL_CASES):
        scenario = script.scenarios[case % len(script.scenarios)]
        first_turn = Scenario(scenario.title, scenario.turns[:1])
        extra = {"evalRunId": run_id, "caseId": f"case_{number}_{case + 1}", "env": "ci"}
        yield from conversation(
            rng,
            script,
            start_ms,
            not_after_ms=start_ms,
            scenario=first_turn,
            mishap=Mishap.NONE,
            source="eval-run",
            extra=extra,
        )
        start_ms += rng.randint(2_000, 6_000)
