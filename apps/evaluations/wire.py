"""Runs, results and gates as the wire has them (source 1:985-1031, 1:1463-1478).

A run of ten thousand results is put together without decoding what was stored: JSON columns pass through as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from apps.core.times import datetime_to_iso
from apps.evaluations import selectors
from apps.evaluations.models import GateVerdict, Result, Run, Tally
from apps.evaluations.services.tallies import judges_of


class ResultRow(msgspec.Struct, rename="camel"):
    """One row of a run's `results`; the two last keys are only there when they were sent."""

    question_index: int | None
    question_text: str | None
    run_number: int | None
    input: Raw | None
    output: Raw | None
    rating: float | None
    justification: str | None
    trace_id: str | None
    latency_ms: float | None
    input_tokens: int | None
    output_tokens: int | None
    vector_similarity: float | None
    jaccard_similarity: float | None
    bleu_score: float | None
    rouge_score: float | None
    code_scorer_results: Raw | None
    judge_scorer_results: Raw | None
    is_smoke_test_variant: bool
    smoke_test_variant_text: str | None
    status: str
    error: Raw | None
    metadata: Raw | UnsetType = UNSET
    observable_trace: Raw | UnsetType = UNSET


class _Main(msgspec.Struct):
    query: Any = None


class _Case(msgspec.Struct):
    main_question: _Main | None = None


class _Snapshot(msgspec.Struct):
    questions: list[_Case] = []


_snapshot = msgspec.json.Decoder(_Snapshot)
_encoder = msgspec.json.Encoder()


def number(value: float | None) -> float | int | None:
    """A float as the shortest JSON number: 8 rather than 8.0."""
    return int(value) if value is not None and value.is_integer() else value


def mean(tally: Tally) -> float | int | None:
    """The unrounded mean of a tally, None when nothing is rated."""
    return number(tally.rating_sum / tally.rated) if tally.rated else None


def live_statistics(run: Run) -> dict[str, Any]:
    """`liveStatistics` of a run, from its running figures (EVAL-079)."""
    return {
        "averageRating": mean(run),
        "minRating": number(run.rating_min),
        "maxRating": number(run.rating_max),
        "ratedCount": run.rated,
        "skippedCount": run.skipped,
        "failedCount": run.failed,
    }


def case_statistics(tallies: Iterable[Any]) -> list[dict[str, Any]]:
    """`caseStatistics`: the spread of repetitions, for cases with two or more rated rows (EVAL-149, EVAL-150)."""
    rows = []
    for tally in tallies:
        average = tally.rating_sum / tally.rated
        # Rounding in the running sums must not make a spread out of none, nor a negative one.
        variance = max(tally.rating_squares / tally.rated - average * average, 0.0)
        rows.append(
            {
                "questionIndex": tally.question_index,
                "ratedCount": tally.rated,
                "averageRating": number(average),
                "minRating": number(tally.rating_min),
                "maxRating": number(tally.rating_max),
                "ratingVariance": number(round(variance, 2)),
            }
        )
    return rows


def scorer_breakdown(run: Run, grader: dict[str, Any], tallies: dict[str, Any]) -> list[dict[str, Any]] | None:
    """`scorerBreakdown` of runs with several judges or a group, the primary first; else None (EVAL-135, EVAL-137)."""
    group = grader.get("group")
    judges = judges_of(grader)
    if not group and not judges:
        return None
    primary = grader["primary"]
    rows = [
        {
            "scorerId": primary["id"],
            "name": f"{group['name']} (group)" if group else primary["name"],
            "primary": True,
            "averageRating": mean(run),
            "scored": run.rated,
        }
    ]
    for scorer_id, name in judges:
        tally = tallies.get(scorer_id)
        rows.append(
            {
                "scorerId": scorer_id,
                "name": name,
                "primary": False,
                "averageRating": mean(tally) if tally else None,
                "scored": tally.rated if tally else 0,
            }
        )
    return rows


def scored_result(row: Result, *, extra_judges: bool, duplicate: bool) -> dict[str, Any]:
    """An entry of `scoredResults`; a failed result is rated 0 here, and null when the run is read (EVAL-072)."""
    entry: dict[str, Any] = {
        "idempotencyKey": row.idempotency_key,
        "rating": 0 if row.status == Result.Status.FAILED else number(row.rating),
        "justification": row.justification,
        "status": row.status,
        "vectorSimilarity": row.vector_similarity,
        "jaccardSimilarity": row.jaccard_similarity,
        "bleuScore": row.bleu_score,
        "rougeScore": row.rouge_score,
        "codeScorerResults": row.code_scorer_results,
    }
    if extra_judges:
        entry["judgeScorerResults"] = row.judge_scorer_results
    if duplicate:
        entry["deduped"] = True
    return entry


def run_documents(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """Get Run documents of runs from `selectors.documents`, one by one in their order, newest first.

    Four queries in all, however many runs and results; only one run's results are in memory at a time.
    """
    ids = [run.pk for run in runs]
    cases = selectors.case_tallies(ids)
    scorers = selectors.scorer_tallies(ids)
    groups = groupby(selectors.wire_rows(ids).iterator(chunk_size=2_000), key=itemgetter(0))
    coming, rows = next(groups, (None, iter(())))
    for run in runs:
        results = b"[]"
        if run.pk == coming:
            texts = question_texts(run.snapshot_text)  # type: ignore[attr-defined]
            results = _encoder.encode([_row(item, texts) for item in rows])
            coming, rows = next(groups, (None, iter(())))
        statistics = live_statistics(run)
        yield {
            "_id": run.pk,
            "runId": run.pk,
            "datasetId": run.dataset_id,
            "evaluationSettingsId": run.evaluation_settings_id,
            "scorerGroupId": run.scorer_group_id,
            "additionalScorerIds": run.additional_scorer_ids,
            "scorerBreakdown": scorer_breakdown(run, run.grader, scorers.get(run.pk, {})),
            "evaluationSubject": run.subject,
            "status": run.status,
            "resultCount": run.result_count,
            "averageRating": statistics["averageRating"],
            "liveStatistics": statistics,
            "caseStatistics": case_statistics(cases.get(run.pk, [])),
            "results": Raw(results),
        }


def run_list_chunks(runs: Sequence[Run]) -> Iterator[bytes]:
    """The body `{ "runs": [...] }` in pieces of one run each, for lists too large to hold."""
    yield b'{"runs":['
    for number_, document in enumerate(run_documents(runs)):
        yield (b"," if number_ else b"") + _encoder.encode(document)
    yield b"]}"


def question_texts(snapshot: str) -> list[str | None]:
    """The main question's text of every case of a stored snapshot."""
    texts: list[str | None] = []
    for case in _snapshot.decode(snapshot).questions:
        query = case.main_question.query if case.main_question else None
        texts.append(query if isinstance(query, str) else None)
    return texts


def gate_verdict(row: GateVerdict) -> dict[str, Any]:
    """An entry of the gate history (EVAL-184)."""
    return {
        "_id": row.pk,
        "runId": row.run_id,
        "datasetId": row.dataset_id,
        "datasetName": row.dataset_name,
        "passed": row.passed,
        "averageRating": number(row.average_rating),
        "baselineRunId": row.baseline_run_id,
        "baselineAverage": number(row.baseline_average),
        "gatedScorer": row.gated_scorer,
        "caller": row.caller,
        "checks": row.checks,
        "createdAt": datetime_to_iso(row.created_at),
    }


def _raw(text: str | None) -> Raw | None:
    return None if text is None else Raw(text.encode())


def _row(columns: tuple[Any, ...], texts: list[str | None]) -> ResultRow:
    (_, index, run_number, given, output, rating, justification, trace_id, latency, input_tokens, output_tokens,
     vector, jaccard, bleu, rouge, code, judges, variant, variant_text, status, error, metadata, trace) = columns  # fmt: skip
    return ResultRow(
        index,
        texts[index] if index is not None and index < len(texts) else None,
        run_number,
        _raw(given),
        _raw(output),
        number(rating),
        justification,
        trace_id,
        number(latency),
        input_tokens,
        output_tokens,
        vector,
        jaccard,
        bleu,
        rouge,
        _raw(code),
        _raw(judges),
        bool(variant),
        variant_text,
        status,
        _raw(error),
        UNSET if metadata is None else Raw(metadata.encode()),
        UNSET if trace is None else Raw(trace.encode()),
    )
