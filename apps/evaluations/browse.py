"""Reads for the pages: lists of runs and of one run's results, a page at a time, whatever their number.

No function here loads the rows of a whole run: what a page says about all of them comes from the run's own figures or
from one aggregate query, and only the rows shown are read with their texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, Q, QuerySet
from django.db.models.functions import Floor

from apps.core.ids import is_id
from apps.evaluations import selectors
from apps.evaluations.models import CIRun, GateVerdict, PairwiseComparison, Result, Run
from apps.projects.models import Project

PAGE = 50
RESULT_PAGE = 50
# What an older version of a page's address may ask for without the database counting forever.
LAST_PAGE = 10_000
PASS_MARK = 5.0

SHOWN = ("", "low", "failed", "skipped", "variants")
ORDERS = ("worst", "best", "case", "slowest")


@dataclass(frozen=True, slots=True)
class RunFilters:
    """What the list of runs is narrowed to; empty values mean everything."""

    search: str = ""
    dataset_id: str = ""
    status: str = ""
    source: str = ""

    @property
    def narrowed(self) -> bool:
        """Whether anything is filtered out."""
        return bool(self.search or self.dataset_id or self.status or self.source)


@dataclass(frozen=True, slots=True)
class RunPage:
    """Runs newest first, and the cursor of the next page or None."""

    rows: list[Run]
    next_cursor: str | None


def list_runs(project: Project, filters: RunFilters, *, cursor: str = "", limit: int = PAGE) -> RunPage:
    """A page of runs of every source, newest first, with their graders and without the frozen questions."""
    found = _filtered(Run.objects.filter(project=project), filters).defer("snapshot").order_by("-id")
    if is_id(cursor):
        found = found.filter(pk__lt=cursor)
    rows = list(found[: limit + 1])
    return RunPage(rows[:limit], rows[limit - 1].pk if len(rows) > limit else None)


def _filtered(runs: QuerySet[Run], filters: RunFilters) -> QuerySet[Run]:
    if filters.dataset_id:
        runs = runs.filter(dataset_id=filters.dataset_id)
    if filters.status:
        runs = runs.filter(status=filters.status)
    if filters.source:
        runs = runs.filter(run_source=filters.source)
    if filters.search:
        words = filters.search
        runs = runs.filter(
            Q(dataset_name__icontains=words)
            | Q(version_label__icontains=words)
            | Q(split__icontains=words)
            | Q(subject__displayName__icontains=words)
            | Q(pk=words if is_id(words) else "")
        )
    return runs


def datasets_with_runs(project: Project) -> list[tuple[str, str]]:
    """(id, newest name) of the datasets that have runs, by name; at most 200."""
    rows = (
        Run.objects.filter(project=project).order_by("id").values_list("dataset_id", "dataset_name").distinct()[:2_000]
    )
    names = dict(rows)
    return sorted(names.items(), key=lambda item: item[1].lower())[:200]


def sources_of(project: Project) -> list[str]:
    """The sources that runs of the project came from."""
    return sorted(Run.objects.filter(project=project).order_by().values_list("run_source", flat=True).distinct()[:20])


def get_run(project: Project, run_id: str) -> Run | None:
    """One run with everything but its frozen parts (see services.snapshot.frozen), or None."""
    return selectors.get_run(project, run_id)


@dataclass(frozen=True, slots=True)
class Distribution:
    """Rated results by whole rating, 0 to 10; a failed result stands at 0."""

    counts: tuple[int, ...]

    @property
    def most(self) -> int:
        """The largest count."""
        return max(self.counts)

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.counts)


def distribution(run_id: str) -> Distribution:
    """How the ratings of a run spread; paraphrases and what could not be judged are left out."""
    rows = (
        selectors.rated_rows([run_id])
        .annotate(bucket=Floor(selectors.RATED_VALUE))
        .values_list("bucket")
        .annotate(n=Count("id"))
        .order_by()
    )
    counts = [0] * 11
    for bucket, n in rows:
        counts[min(max(int(bucket), 0), 10)] += n
    return Distribution(tuple(counts))


def count_below(run_id: str, mark: float) -> int:
    """How many rated results lie below a mark, failed ones among them."""
    return selectors.rated_rows([run_id]).annotate(value=selectors.RATED_VALUE).filter(value__lt=mark).count()


@dataclass(frozen=True, slots=True)
class ResultPage:
    """One page of results with its place: `number` from 1, `total` rows in all."""

    rows: list[Result]
    number: int
    total: int

    @property
    def first(self) -> int:
        """The place of the first row, from 1; 0 when there is none."""
        return (self.number - 1) * RESULT_PAGE + 1 if self.rows else 0

    @property
    def last(self) -> int:
        """The place of the last row."""
        return self.first + len(self.rows) - 1 if self.rows else 0

    @property
    def older(self) -> int | None:
        """The number of the next page."""
        return self.number + 1 if self.last < self.total else None

    @property
    def newer(self) -> int | None:
        """The number of the page before."""
        return self.number - 1 if self.number > 1 else None


_LISTED = (
    "id", "run_id", "question_index", "run_number", "status", "rating", "justification", "input", "error", "latency_ms",
    "input_tokens", "output_tokens", "trace_id", "is_variant", "variant_text", "vector_similarity", "jaccard_similarity",
    "bleu_score", "rouge_score", "judge_scorer_results",
)  # fmt: skip


def list_results(
    run_id: str,
    *,
    show: str = "",
    order: str = "worst",
    mark: float = PASS_MARK,
    number: int = 1,
    question: int | None = None,
) -> ResultPage:
    """A page of a run's results; what is still being judged is left out.

    `show`: "" (all but paraphrases), low (rated below `mark`), failed, skipped or variants. `order`: worst first (failed
    ones, then the lowest; what could not be judged stands last, for it has no rating), best, case or slowest.
    """
    rows = selectors.accepted([run_id]).annotate(value=selectors.RATED_VALUE)
    rows = rows.filter(is_variant=show == "variants")
    if show == "low":
        rows = rows.filter(value__lt=mark)
    elif show in ("failed", "skipped"):
        rows = rows.filter(status=show)
    if question is not None:
        rows = rows.filter(question_index=question)
    place = ("question_index", "run_number", "id")
    orders: dict[str, tuple[Any, ...]] = {
        "worst": (F("value").asc(nulls_last=True), *place),
        "best": (F("value").desc(nulls_last=True), *place),
        "case": place,
        "slowest": (F("latency_ms").desc(nulls_last=True), *place),
    }
    total = rows.count()
    number = max(1, min(number, LAST_PAGE, -(-total // RESULT_PAGE) or 1))
    start = (number - 1) * RESULT_PAGE
    # Sorted by ids alone, so that no database carries the texts of ten thousand answers through its sort.
    ids = list(
        rows.order_by(*orders.get(order, orders["worst"])).values_list("id", flat=True)[start : start + RESULT_PAGE]
    )
    found = {row.pk: row for row in Result.objects.filter(pk__in=ids).only(*_LISTED)}
    return ResultPage([found[pk] for pk in ids if pk in found], number, total)


def get_result(run: Run, result_id: str) -> Result | None:
    """One result of a run, whole."""
    return Result.objects.filter(run=run, pk=result_id).first() if is_id(result_id) else None


def repetitions(row: Result) -> list[Result]:
    """The results of the same case in the same run, light, in the order of their numbers; at most 20."""
    if row.question_index is None:
        return []
    found = Result.objects.filter(run_id=row.run_id, question_index=row.question_index, is_variant=False)
    return list(
        found.exclude(status=Result.Status.PENDING)
        .only("id", "run_id", "run_number", "status", "rating", "question_index")
        .order_by("run_number", "id")[:20]
    )


def pending_count(run_id: str) -> int:
    """How many results are being judged now."""
    return Result.objects.filter(run_id=run_id, status=Result.Status.PENDING).count()


def variant_average(run_id: str) -> tuple[float | None, int]:
    """(mean, rated) of the paraphrases of a run, which never count in its average."""
    rows = selectors.accepted([run_id]).filter(is_variant=True).annotate(value=selectors.RATED_VALUE)
    values = [value for value in rows.values_list("value", flat=True)[:5_000] if value is not None]
    return (sum(values) / len(values) if values else None), len(values)


def ci_run_of(run: Run) -> CIRun | None:
    """The hosted-style CI run around a run, or None."""
    return CIRun.objects.filter(run=run).first()


def comparable_runs(run: Run, limit: int = 50) -> list[Run]:
    """Other completed runs of the same dataset, newest first."""
    same = selectors.runs_of(run.project).filter(dataset_id=run.dataset_id, status=Run.Status.COMPLETED)
    return list(same.exclude(pk=run.pk).exclude(run_source=selectors.TRACE_EVALUATION)[:limit])


def last_pairwise(project: Project, run_a: str, run_b: str) -> PairwiseComparison | None:
    """The newest stored head to head of two runs, whichever of them was A."""
    either = Q(run_a_id=run_a, run_b_id=run_b) | Q(run_a_id=run_b, run_b_id=run_a)
    return PairwiseComparison.objects.filter(either, project=project).order_by("-id").first()


def list_gates(
    project: Project, *, passed: bool | None = None, cursor: str = "", limit: int = PAGE
) -> tuple[list[GateVerdict], str | None]:
    """A page of recorded gates, newest first, with the labels of their runs; and the next page's cursor or None."""
    rows = selectors.gates_of(project).select_related("run").defer("run__snapshot", "run__grader")
    if passed is not None:
        rows = rows.filter(passed=passed)
    if is_id(cursor):
        rows = rows.filter(pk__lt=cursor)
    found = list(rows[: limit + 1])
    return found[:limit], found[limit - 1].pk if len(found) > limit else None


@dataclass(frozen=True, slots=True)
class ComparedCase:
    """One question of two runs; a rating is None when the run has none for it."""

    index: int
    before: float | None
    after: float | None

    @property
    def delta(self) -> float | None:
        """Candidate minus baseline."""
        return self.after - self.before if self.before is not None and self.after is not None else None


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """Two runs by case: the ratings only, the largest loss first and what cannot be compared last."""

    cases: list[ComparedCase]
    baseline_means: dict[int, float]
    candidate_means: dict[int, float]


def compare_cases(baseline: Run, candidate: Run) -> ComparedRuns:
    """Every case that either run answered, by its mean rating in both; four queries, no texts."""
    old, new = selectors.case_means(baseline.pk), selectors.case_means(candidate.pk)
    known = selectors.accepted([baseline.pk, candidate.pk]).filter(is_variant=False, question_index__isnull=False)
    indexes = known.order_by("question_index").values_list("question_index", flat=True).distinct()
    cases = [ComparedCase(index, old.get(index), new.get(index)) for index in indexes if index is not None]
    cases.sort(key=lambda case: (case.delta is None, case.delta or 0.0, case.index))
    return ComparedRuns(cases, old, new)


def first_results(run: Run, index: int) -> list[Result]:
    """The results of one case, repetitions in order; at most 10."""
    rows = selectors.accepted([run.pk]).filter(question_index=index, is_variant=False).order_by("run_number", "id")
    return list(rows.defer("observable_trace", "metadata", "retrieval_context")[:10])


def answered_by_both(baseline: Run, candidate: Run) -> int:
    """How many questions both runs have an answer for: what a head to head would judge."""

    def answered(run: Run) -> set[int]:
        rows = selectors.accepted([run.pk]).filter(is_variant=False, question_index__isnull=False, error__isnull=True)
        rows = rows.filter(output__isnull=False).order_by()
        return {index for index in rows.values_list("question_index", flat=True).distinct() if index is not None}

    return len(answered(baseline) & answered(candidate))
