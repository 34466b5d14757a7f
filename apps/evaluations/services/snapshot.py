"""What a run is judged by, frozen: the questions and the grader as they were when it began (EVAL-028).

The frozen part never changes, so each process keeps that of the runs it worked on last; a batch of results then does
not read and decode ten thousand questions again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from apps.datasets import selectors as datasets
from apps.datasets.models import Dataset
from apps.datasets.questions import query_of, usable
from apps.evaluations.models import Run
from apps.projects.models import Project

# Runs whose frozen part a process keeps. The largest ones are some megabytes each.
_KEPT = 8


@dataclass(frozen=True, slots=True)
class Frozen:
    """The frozen part of a run: `questions` as the dataset had them and the `grader` (apps.scorers.grading)."""

    questions: list[dict[str, Any]]
    grader: dict[str, Any]

    def case(self, index: int | None) -> dict[str, Any]:
        """The case at a 0-based index; an empty one for an index the dataset does not have."""
        if index is None or not 0 <= index < len(self.questions):
            return {}
        return self.questions[index]

    def main_question(self, index: int | None) -> dict[str, Any]:
        """The question a result answers, with its expectations; an empty one for an index the dataset does not have."""
        main = self.case(index).get("main_question")
        return main if isinstance(main, dict) else {}

    def question_text(self, index: int | None) -> str | None:
        """The main question's text; None for an index the dataset does not have."""
        case = self.case(index)
        return query_of(case) if case else None

    @property
    def extra_judges(self) -> bool:
        """Whether results carry verdicts beside the primary one (several judges, or a group)."""
        return bool(self.grader.get("extras")) or bool(self.grader.get("group"))


_lock = threading.Lock()
_kept: OrderedDict[str, Frozen] = OrderedDict()


def freeze(dataset: Dataset) -> dict[str, Any]:
    """The JSON a run keeps of its dataset: questions, grading and repetitions."""
    return {
        "questions": dataset.questions,
        "grading": dataset.grading,
        "gradingId": dataset.grading_id,
        "numberOfRequests": dataset.number_of_requests,
    }


def version_of(dataset: Dataset) -> int | None:
    """The number of the dataset version that a run uses."""
    return datasets.current_version(dataset)


def dataset_of(project: Project, dataset_id: str) -> Dataset | None:
    """The dataset of this project, or None."""
    return datasets.get_dataset(project, dataset_id)


def frozen(run_id: str) -> Frozen:
    """The frozen part of a run; raises Run.DoesNotExist."""
    with _lock:
        found = _kept.get(run_id)
        if found is not None:
            _kept.move_to_end(run_id)
            return found
    snapshot, grader = Run.objects.values_list("snapshot", "grader").get(pk=run_id)
    found = Frozen(questions=list(snapshot.get("questions") or []), grader=grader or {})
    with _lock:
        _kept[run_id] = found
        while len(_kept) > _KEPT:
            _kept.popitem(last=False)
    return found


def expected_results(
    questions: list[dict[str, Any]], grader: dict[str, Any], split: str | None, variants: int = 0
) -> int:
    """How many results a complete run of these questions has: cases, times repetitions, times models, plus variants."""
    cases = sum(1 for _ in usable(questions, split or None))
    models = len(grader.get("comparisonModels") or []) or 1
    return cases * max(int(grader.get("repetitions") or 1), 1) * models + variants
