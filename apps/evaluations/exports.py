"""Export rows of runs, their results and recorded gates (source 1:8092-8134)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apps.core import exports
from apps.evaluations.models import CaseTally, GateVerdict, Result, Run, ScorerTally
from apps.projects.models import Project

_results = exports.model_entity("run-results", Result, project="run__project", without=("claimed_until",))


def _accepted(project: Project) -> int:
    return Result.objects.filter(run__project=project).exclude(status=Result.Status.PENDING).count()


def _rows(project: Project, since_ms: int | None) -> Iterator[dict[str, Any]]:
    """Results that have their verdict; the others are not accepted yet."""
    return (row for row in _results.rows(project, since_ms) if row["status"] != Result.Status.PENDING)


def register() -> None:
    """Called once, when Django is ready."""
    exports.register(exports.model_entity("runs", Run))
    exports.register(exports.Entity("run-results", _accepted, _rows, (Result,)))
    exports.register(exports.model_entity("gate-results", GateVerdict))
    for model in (CaseTally, ScorerTally):
        exports.leave_out(model, "sums of run-results")
