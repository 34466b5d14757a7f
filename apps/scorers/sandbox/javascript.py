"""Run one code scorer's JavaScript and say what it returned."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.scorers.sandbox.pool import SandboxError, pool
from apps.scorers.texts import cut, storable

CODE_MOST = 200_000
REASONING_MOST = 8_000
_ERROR_MOST = 500


class Absent:
    """Marks a name whose value is `undefined`."""


ABSENT = Absent()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a script returned: a finite score or a deliberate None with its reasoning, or the error that ended it."""

    score: float | None = None
    reasoning: str | None = None
    error: str | None = None
    timed_out: bool = False


def run_javascript(code: str, names: dict[str, Any], *, timeout_s: float = 3.0, memory_mb: int = 64) -> Outcome:
    """Run the body of a synchronous function with `names` (JSON values, or ABSENT) in scope.

    A number, or {score, reasoning}, is the result; `score: null` is a deliberate no-score. Everything else is an error:
    a throw, a syntax error, NaN, an infinite number, a promise, no return, more than `timeout_s` seconds, more than
    `memory_mb` of memory (64 at most), more than 64 KB returned. Never raises for what a script does.
    """
    if not code.strip():
        return Outcome(error="the scorer has no code")
    if len(code) > CODE_MOST:
        return Outcome(error=f"the code is longer than {CODE_MOST:,} characters")
    given = {name: value for name, value in names.items() if value is not ABSENT}
    absent = [name for name, value in names.items() if value is ABSENT]
    try:
        answer = pool().run(code, given, absent, time_s=timeout_s, memory_mb=memory_mb)
    except SandboxError as error:
        return Outcome(error=str(error), timed_out=error.timed_out)
    return _outcome(answer)


def protections() -> list[Any]:
    """What holds for users' JavaScript on this host, each a phrase for people; raises SandboxError when the sandbox does
    not start at all."""
    held = [
        _("a process of its own with an empty environment"),
        _("a fresh engine for every run, without files, network, processes or modules"),
        _("3 seconds, 64 MB of memory and 64 KB of result"),
        _("no new files or processes (resource limits)"),
    ]
    if pool().filtered():
        held.append(_("system calls filtered by the kernel (seccomp)"))
    return held


def _outcome(answer: dict[str, Any]) -> Outcome:
    if "error" in answer:
        return Outcome(error=cut(storable(str(answer["error"])), _ERROR_MOST), timed_out=bool(answer.get("timed_out")))
    value = answer.get("value")
    score = value.get("score") if isinstance(value, dict) else value
    if score is not None and (
        isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score)
    ):
        return Outcome(error="it returned no finite number")
    reasoning = value.get("reasoning") if isinstance(value, dict) else None
    return Outcome(
        score=None if score is None else float(score),
        reasoning=cut(storable(reasoning), REASONING_MOST) if isinstance(reasoning, str) else None,
    )
