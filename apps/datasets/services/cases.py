"""Cases from production: a draft of one from a trace or session, and adding it without adding it twice.

The add runs three checks in this order and stops at the first hit: the same source, the same question, a question of
the same meaning (DATA-055..059). Only main questions are compared.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction

from apps.core.api.errors import APIError, NotFound
from apps.core.times import now_ms, to_iso
from apps.datasets import questions, selectors, wire
from apps.datasets.models import Dataset
from apps.datasets.services import datasets, similarity
from apps.datasets.services.turns import answer_of, question_of
from apps.projects.models import Project
from apps.projects.services import audit
from apps.tracing import selectors as tracing
from apps.tracing.store.reads import SpanRow

# Rounds of embedding the questions that others added in between, before giving up.
_ATTEMPTS = 20
_PAYLOADS_AT_ONCE = 200
_REASONS = {
    "same-source": "This trace or session was already added to the dataset",
    "same-query": "The dataset already asks this question",
    "similar-query": "The dataset already asks a very similar question",
}


@dataclass(frozen=True)
class Duplicate:
    """Why a case would be one too many: `same-source`, `same-query` or `similar-query`, and the case that is there."""

    reason: str
    existing_query: str
    similarity: float | None = None

    def wire(self) -> dict[str, Any]:
        """`{ reason, existingQuery, similarity? }`."""
        found: dict[str, Any] = {"reason": self.reason, "existingQuery": self.existing_query}
        if self.similarity is not None:
            found["similarity"] = round(self.similarity, 4)
        return found


class DuplicateCase(APIError):
    """409: the dataset has this case already; `duplicate` says which one and why."""

    def __init__(self, duplicate: Duplicate) -> None:
        super().__init__(_REASONS[duplicate.reason], 409)
        self.duplicate = duplicate


# --- Preview


def case_preview(*, project: Project, trace_id: str | None = None, session_id: str | None = None) -> dict[str, Any]:
    """`{ case, turns }` from a trace or a whole session; stores nothing (DATA-045..050).

    The expected results stay null: what the agent said is what may have been wrong. Both ids: the trace. Raises 400
    without an id, 404 for an unknown one and for one without a usable turn.
    """
    if trace_id:
        rows, source = _trace(project, trace_id), {"traceId": trace_id}
    elif session_id:
        rows, source = _session(project, session_id), {"sessionId": session_id}
    else:
        raise APIError("traceId or sessionId is required")
    turns = [
        {"query": query, "actualOutput": answer_of(row), "error": row.error, "traceId": row.id}
        for row in rows
        if (query := question_of(row))
    ]
    if not turns:
        raise NotFound("No question of a user was found there")
    first, *later = [{"query": turn["query"], "expectedResults": None} for turn in turns]
    return {"case": {"main_question": first, "follow_up_questions": later, "source": source}, "turns": turns}


def _trace(project: Project, trace_id: str) -> list[SpanRow]:
    """The trace's root; a child names the trace it belongs to."""
    row = None if "\x00" in trace_id else tracing.get_span(project, trace_id)
    if row is None:
        raise NotFound("Trace not found")
    if not row.is_root and row.root_id:
        return [tracing.get_span(project, row.root_id) or row]
    return [row]


def _session(project: Project, session_id: str) -> list[SpanRow]:
    """The session's roots in the order they began; children are no turns."""
    if "\x00" in session_id:
        raise NotFound("Session not found")
    ids = [row.id for row in tracing.session_spans(project, session_id, payloads=False) if row.is_root]
    if not ids:
        raise NotFound("Session not found")
    found: dict[str, SpanRow] = {}
    for start in range(0, len(ids), _PAYLOADS_AT_ONCE):
        found |= tracing.spans_by_ids(project, ids[start : start + _PAYLOADS_AT_ONCE])
    return [found[row_id] for row_id in ids if row_id in found]


# --- Add


def add_case(
    *,
    project: Project,
    dataset_id: str,
    case: Any,
    dedupe: bool = True,
    creator: str = "",
    request: Any = None,
) -> int:
    """Append one case with its source and a history entry; gives the number of cases the dataset has then.

    Raises 400 for a blank query or a missing source, 404 for an unknown dataset, DuplicateCase (409) unless `dedupe`
    is off. Two adds at once never store the same question twice: the checks are made again under the dataset's lock,
    and a question that came in meanwhile is embedded before another try.
    """
    entry = _entry(case)
    query = questions.query_of(entry)
    for _ in range(_ATTEMPTS):
        vectors = _prepared(project, dataset_id, entry) if dedupe else None
        with transaction.atomic():
            dataset = datasets.locked(project, dataset_id)
            existing = questions.case_texts(dataset.questions)
            if dedupe:
                duplicate = exact_duplicate(dataset.questions, entry)
                if duplicate is None and vectors is not None:
                    if any(text.strip() and similarity.key_of(text) not in vectors for text in existing):
                        continue
                    duplicate = similar_duplicate(vectors, query, existing)
                if duplicate is not None:
                    raise DuplicateCase(duplicate)
            return _append(project, dataset, entry, creator=creator, request=request)
    raise APIError("The dataset is being changed by others; try again", 503)


def _prepared(project: Project, dataset_id: str, entry: dict[str, Any]) -> similarity.Vectors | None:
    """Vectors of everything to compare, made before the lock: nobody waits on a provider under it."""
    dataset = selectors.get_dataset(project, dataset_id)
    if dataset is None:
        raise NotFound("Dataset not found")
    duplicate = exact_duplicate(dataset.questions, entry)
    if duplicate is not None:
        raise DuplicateCase(duplicate)
    return similarity.question_vectors(project, [questions.query_of(entry), *questions.case_texts(dataset.questions)])


def exact_duplicate(existing: list[dict[str, Any]], entry: dict[str, Any]) -> Duplicate | None:
    """The first two checks: same source, then same question without regard to case and spacing."""
    source = _source_key(entry)
    if source is not None:
        for case in existing:
            if _source_key(case) == source:
                return Duplicate("same-source", questions.query_of(case))
    wanted = normalized_query(questions.query_of(entry))
    for case in existing:
        text = questions.query_of(case)
        if text and normalized_query(text) == wanted:
            return Duplicate("same-query", text)
    return None


def similar_duplicate(vectors: similarity.Vectors, query: str, existing: list[str]) -> Duplicate | None:
    """The third check: the nearest question, when it is at least as near as T."""
    found = similarity.nearest(vectors, query, existing)
    if found is None or found[1] < settings.CASE_SIMILARITY_THRESHOLD:
        return None
    return Duplicate("similar-query", existing[found[0]], found[1])


def normalized_query(text: str) -> str:
    """A question without regard to case and spacing."""
    return " ".join(unicodedata.normalize("NFC", text).split()).casefold()


def _source_key(case: dict[str, Any]) -> tuple[str, str] | None:
    """The trace a case came from, else its session; a session is not the same source as one of its traces."""
    source = case.get("source")
    if not isinstance(source, dict):
        return None
    for key in ("traceId", "sessionId"):
        value = source.get(key)
        if isinstance(value, str) and value:
            return key, value
    return None


def _entry(case: Any) -> dict[str, Any]:
    if not isinstance(case, dict):
        raise APIError("case is required")
    main = case.get("main_question")
    query = main.get("query") if isinstance(main, dict) else None
    if not isinstance(query, str) or not query.strip():
        raise APIError("case.main_question.query is required")
    if not isinstance(case.get("source"), dict):
        raise APIError("case.source is required")
    [entry] = questions.normalized([case])
    entry.setdefault("follow_up_questions", [])
    entry["source"] = {**entry["source"], "addedAt": to_iso(now_ms())}
    return entry


def _append(project: Project, dataset: Dataset, entry: dict[str, Any], *, creator: str, request: Any) -> int:
    before = wire.content(dataset)
    dataset.questions = [*dataset.questions, entry]
    dataset.case_count = len(dataset.questions)
    datasets.save_changes(dataset, before=before, newest=selectors.current_version(dataset), creator=creator)
    audit.record(
        action="dataset.addCase",
        project=project,
        request=request,
        summary_fields=["questions"],
        target_type="dataset",
        target_id=dataset.pk,
    )
    return dataset.case_count
