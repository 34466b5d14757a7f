"""Versions of an agent side by side, and two runs case by case (EVAL-249..254). Only reads; no judge is asked."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from apps.core.api.errors import APIError, NotFound
from apps.core.ids import id_ms, is_id
from apps.core.times import datetime_to_iso, to_iso
from apps.datasets import selectors as datasets
from apps.datasets.questions import query_of
from apps.evaluations import selectors, statistics
from apps.evaluations.models import Result, Run
from apps.evaluations.services.tallies import FAILED_RATING
from apps.projects.models import Project

UNVERSIONED = "(unversioned)"


@dataclass(slots=True)
class _Version:
    """The completed runs that carry one label."""

    label: str
    runs: list[Run] = field(default_factory=list)

    @property
    def latest(self) -> Run:
        return max(self.runs, key=lambda run: run.pk)

    @property
    def rated(self) -> int:
        return sum(run.rated for run in self.runs)

    @property
    def average(self) -> float | None:
        return sum(run.rating_sum for run in self.runs) / self.rated if self.rated else None

    def as_wire(self) -> dict[str, Any]:
        return {
            "version": self.label,
            "runCount": len(self.runs),
            "ratedCount": self.rated,
            "averageRating": self.average,
            "lastRunAt": to_iso(id_ms(self.latest.pk)),
            "latestRunId": self.latest.pk,
        }


def versions_of(*, project: Project, dataset_id: str) -> dict[str, Any]:
    """`{ versions, comparison }` of a dataset: the two most recently run versions compared (source 1:2885-2930).

    Raises 404 `Dataset not found`. `comparison` is null with fewer than two versions; its `confidence` is ours.
    """
    if datasets.get_dataset(project, dataset_id) is None:
        raise NotFound("Dataset not found")
    by_label: dict[str, _Version] = {}
    runs = selectors.runs_of(project).filter(dataset_id=dataset_id, status=Run.Status.COMPLETED)
    for run in runs.exclude(run_source=selectors.TRACE_EVALUATION):
        label = run.version_label or UNVERSIONED
        by_label.setdefault(label, _Version(label)).runs.append(run)
    versions = sorted(by_label.values(), key=lambda version: version.latest.pk, reverse=True)
    return {
        "versions": [version.as_wire() for version in versions],
        "comparison": _compared(versions[0], versions[1]) if len(versions) > 1 else None,
    }


def _compared(candidate: _Version, baseline: _Version) -> dict[str, Any]:
    new, old = candidate.average, baseline.average
    return {
        "candidateVersion": candidate.label,
        "baselineVersion": baseline.label,
        "candidateAvg": new,
        "baselineAvg": old,
        "passed": new is not None and (old is None or new >= old),
        "confidence": statistics.confidence(_case_means(candidate), _case_means(baseline)),
    }


def _case_means(version: _Version) -> dict[int, float]:
    """Mean rating by question over all runs of a version."""
    sums: dict[int, list[float]] = defaultdict(list)
    for run in version.runs:
        for index, value in selectors.case_means(run.pk).items():
            sums[index].append(value)
    return {index: sum(values) / len(values) for index, values in sums.items()}


def compare_runs(*, project: Project, baseline_id: str | None, candidate_id: str | None) -> dict[str, Any]:
    """Two runs of one dataset case by case, with the difference and how sure it is (source 1:2892).

    Raises 400 for missing ids or runs of different datasets, 404 `Run not found`.
    """
    if not baseline_id or not candidate_id:
        raise APIError("baseline and candidate are required")
    ids = [item for item in (baseline_id, candidate_id) if is_id(item)]
    found = {run.pk: run for run in Run.objects.filter(project=project, pk__in=ids).defer("grader")}
    if baseline_id not in found or candidate_id not in found:
        raise NotFound("Run not found")
    baseline, candidate = found[baseline_id], found[candidate_id]
    if baseline.dataset_id != candidate.dataset_id:
        raise APIError("The runs belong to different datasets")
    old, new = _sides(baseline), _sides(candidate)
    questions = (candidate.snapshot.get("questions") or [], baseline.snapshot.get("questions") or [])
    cases = []
    for index in sorted(old.keys() | new.keys()):
        before, after = old.get(index), new.get(index)
        known = before is not None and after is not None and None not in (before["rating"], after["rating"])
        cases.append(
            {
                "questionIndex": index,
                "query": _query(questions, index),
                "baseline": before,
                "candidate": after,
                "delta": after["rating"] - before["rating"] if known and before and after else None,
            }
        )
    return {
        "baselineRun": _run_wire(baseline),
        "candidateRun": _run_wire(candidate),
        "cases": cases,
        "confidence": statistics.confidence(selectors.case_means(candidate.pk), selectors.case_means(baseline.pk)),
    }


def _run_wire(run: Run) -> dict[str, Any]:
    return {
        "runId": run.pk,
        "createdAt": datetime_to_iso(run.created_at),
        "version": run.version_label or None,
        "averageRating": run.rating_sum / run.rated if run.rated else None,
    }


def _query(questions: tuple[list[Any], list[Any]], index: int) -> str:
    for cases in questions:
        if index < len(cases) and (text := query_of(cases[index])):
            return text
    return ""


def _sides(run: Run) -> dict[int, dict[str, Any]]:
    """By question `{ rating, output, justification, error }`: the mean of its repetitions, the text of the first."""
    rows = (
        Result.objects.filter(run=run, is_variant=False, question_index__isnull=False)
        .exclude(status=Result.Status.PENDING)
        .order_by("question_index", "run_number", "id")
        .only("question_index", "status", "rating", "output", "justification", "error")
    )
    grouped: dict[int, list[Result]] = defaultdict(list)
    for row in rows:
        if row.question_index is not None:
            grouped[row.question_index].append(row)
    sides = {}
    for index, results in grouped.items():
        rated = [FAILED_RATING if row.status == Result.Status.FAILED else row.rating for row in results]
        numbers = [value for value in rated if value is not None]
        first = results[0]
        sides[index] = {
            "rating": sum(numbers) / len(numbers) if numbers else None,
            "output": first.output,
            "justification": first.justification,
            "error": first.error,
        }
    return sides
