"""Score one answer by a run's frozen grader: judges, similarity metrics, code scorers, deterministic checks, group.

    scored = score_answer(project, run.grader, question, Answer(input="…", output="…", trace_id=…))

Nothing is written but the gateway's own records of model calls. What cannot be scored is None with a reason; the
failure of one part never touches the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from apps.core.workers import Workers
from apps.projects.models import Project
from apps.scorers import members as other_members
from apps.scorers import metrics
from apps.scorers.arithmetic import MemberScore, group_score, of_judge
from apps.scorers.deterministic import ScorerRow, context_match, trajectory_match
from apps.scorers.grader_types import CodeScorer, Grader, Group, GroupMember, Member
from apps.scorers.judging.judge import Judged, JudgeMaterial, Skipped, judge
from apps.scorers.judging.trace_material import TraceMaterial, actual_context, context_text, read_trace
from apps.scorers.models import JudgeScorer
from apps.scorers.sandbox import run_javascript
from apps.scorers.sandbox.javascript import ABSENT
from apps.scorers.vectors import NoVector, similarity

T = TypeVar("T")

# For the judges of an answer beside its primary one, which the caller's own thread waits for.
_beside = Workers(name="judging-beside")


@dataclass(frozen=True, slots=True)
class Answer:
    """An agent's answer. `retrieval_context` is the result's own (a text or a list of chunks); `trace_id` links a trace."""

    input: str
    output: str
    trace_id: str | None = None
    retrieval_context: Any = None


@dataclass(slots=True)
class Scored:
    """The verdicts on one answer, named like the columns of a result.

    `status` is "scored" or "skipped" (then `rating` is None and `justification` the reason). The lists are None when
    nothing of their kind ran. `raw_verdict` is what a primary judge said that could not be used. `judge_cost_usd` sums
    every judge's calls, None when no price is known. `warnings` are for the run, not the row.
    """

    status: str = "skipped"
    rating: float | None = None
    justification: str | None = None
    raw_verdict: str = ""
    vector_similarity: float | None = None
    jaccard_similarity: float | None = None
    bleu_score: float | None = None
    rouge_score: float | None = None
    code_scorer_results: list[ScorerRow] | None = None
    judge_scorer_results: list[dict[str, Any]] | None = None
    judge_cost_usd: float | None = None
    warnings: list[str] = field(default_factory=list)


def score_answer(
    project: Project, grader: Grader | Mapping[str, Any], case: Mapping[str, Any], answer: Answer
) -> Scored:
    """Everything the grader says about one answer (source 1:383-399). `case` is the question as the dataset holds it
    (`main_question` or a follow-up): expectedResults, judgeGuideline, expectedTrajectory and the rest.

    Judges run side by side, the similarity metrics beside them, then the code scorers, which see those verdicts.
    """
    primary: Member = grader["primary"]
    group: Group | None = grader.get("group")
    trace = read_trace(project, answer.trace_id)
    expected = _text(case.get("expectedResults"))
    material = JudgeMaterial(
        input=answer.input,
        output=answer.output,
        expected=expected,
        context=context_text(answer.retrieval_context, trace, case.get("retrievalContext")),
        trajectory=trace.trajectory if trace is not None else None,
        tool_definitions=trace.tool_definitions if trace is not None else None,
        case=case,
        reasoning=trace.reasoning if trace is not None else None,
    )
    scored = Scored()
    rows: list[ScorerRow] = []
    if group is not None:
        rows += _score_group(project, group, material, answer, trace, scored)
    else:
        _score_judges(project, primary, grader.get("extras") or [], material, scored)
        rows += _code_rows(primary.get("codeScorers") or [], answer, expected, trace, scored)
    calls = None if trace is None else [str(call.get("name") or "") for call in trace.tool_calls]
    retrieved = actual_context(answer.retrieval_context, trace)
    for row in (
        trajectory_match(case.get("expectedTrajectory"), calls),
        context_match(case.get("expectedRetrievalContext"), retrieved),
    ):
        if row is not None:
            rows.append(row)
    scored.code_scorer_results = rows or None
    return scored


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


# --- Judges


def _score_judges(
    project: Project, primary: Member, extras: Sequence[Member], material: JudgeMaterial, scored: Scored
) -> None:
    wanted = primary.get("metrics") or {}
    vector = wanted.get("vector")
    jobs: list[Callable[[], Judged | Skipped | float | None]] = []
    if vector and material.expected is not None:
        jobs.append(lambda: _vector(project, material, vector, scored))
    jobs += [_judging(project, extra, material) for extra in extras]
    pending = _start(jobs)
    if material.expected is not None:
        if wanted.get("jaccard"):
            scored.jaccard_similarity = metrics.jaccard(material.output, material.expected)
        if wanted.get("bleu"):
            scored.bleu_score = metrics.bleu(material.output, material.expected)
        if wanted.get("rouge"):
            scored.rouge_score = metrics.rouge_l(material.output, material.expected)
    outcome = judge(project, primary, material)
    results = [take() for take in pending]
    _take_primary(scored, outcome)
    if vector and material.expected is not None:
        value = results.pop(0)
        scored.vector_similarity = value if isinstance(value, float) else None
    verdicts = [
        _verdict_row(extra["id"], extra["name"], result, scored)
        for extra, result in zip(extras, results, strict=True)
        if isinstance(result, Judged | Skipped)
    ]
    scored.judge_scorer_results = verdicts or None


def _judging(project: Project, member: Member, material: JudgeMaterial) -> Callable[[], Judged | Skipped]:
    return lambda: judge(project, member, material)


def _take_primary(scored: Scored, outcome: Judged | Skipped) -> None:
    _add_cost(scored, outcome)
    if isinstance(outcome, Judged):
        scored.status, scored.rating, scored.justification = "scored", outcome.rating, outcome.justification
    else:
        scored.justification, scored.raw_verdict = outcome.reason, outcome.raw


def _add_cost(scored: Scored, outcome: Judged | Skipped) -> None:
    if outcome.cost_usd is not None:
        scored.judge_cost_usd = (scored.judge_cost_usd or 0.0) + outcome.cost_usd


def _verdict_row(scorer_id: str, name: str, outcome: Judged | Skipped, scored: Scored) -> dict[str, Any]:
    _add_cost(scored, outcome)
    if isinstance(outcome, Judged):
        rating, text, status = outcome.rating, outcome.justification, "scored"
    else:
        rating, text, status = None, outcome.reason, "skipped"
    return {"scorerId": scorer_id, "name": name, "rating": rating, "justification": text, "status": status}


def _vector(project: Project, material: JudgeMaterial, wanted: Mapping[str, Any], scored: Scored) -> float | None:
    """Cosine of answer and reference; None with a warning when nothing can embed them."""
    assert material.expected is not None
    try:
        return similarity(project, material.output, material.expected, wanted.get("model") or None)
    except NoVector as error:
        scored.warnings.append(str(error))
        return None


def _start(jobs: Sequence[Callable[[], T]]) -> list[Callable[[], T]]:
    """Start jobs in threads; each returned callable waits for one."""
    return [_beside.submit(job).result for job in jobs]


# --- Code scorers


def _code_rows(
    scorers: Sequence[CodeScorer], answer: Answer, expected: str | None, trace: TraceMaterial | None, scored: Scored
) -> list[ScorerRow]:
    """One row for each enabled scorer, run one after the other with the verdicts so far (source 1:2263-2308)."""
    names = {
        "input": answer.input,
        "output": answer.output,
        "expected": ABSENT if expected is None else expected,
        "toolCalls": ABSENT if trace is None else trace.tool_calls,
        "scores": {
            "rating": scored.rating,
            "judges": {row["name"]: row["rating"] for row in scored.judge_scorer_results or []},
            "vectorSimilarity": scored.vector_similarity,
            "jaccardSimilarity": scored.jaccard_similarity,
            "bleuScore": scored.bleu_score,
            "rougeScore": scored.rouge_score,
        },
    }
    return [code_row(scorer, names) for scorer in scorers if scorer.get("enabled", True) is not False]


def code_row(scorer: CodeScorer, names: dict[str, Any]) -> ScorerRow:
    """The row {name, score, reasoning?, error?} of one code scorer."""
    row: ScorerRow = {"name": scorer.get("name") or "Code scorer", "score": None}
    outcome = run_javascript(scorer["code"], names)
    if outcome.error is not None:
        row["error"] = outcome.error
        return row
    row["score"] = outcome.score
    if outcome.reasoning is not None:
        row["reasoning"] = outcome.reasoning
    return row


# --- Groups


def _score_group(
    project: Project,
    group: Group,
    material: JudgeMaterial,
    answer: Answer,
    trace: TraceMaterial | None,
    scored: Scored,
) -> list[ScorerRow]:
    """Run every member, blend them into the rating; returns the rows of the members that are not judges."""
    members = group.get("members") or []
    alive = set(
        JudgeScorer.objects.filter(
            project=project, pk__in=[member["refId"] for member in members if member["kind"] == "judge"]
        ).values_list("pk", flat=True)
    )
    pending = _start([_member_job(project, member, material, answer, trace, alive) for member in members])
    verdicts: list[dict[str, Any]] = []
    rows: list[ScorerRow] = []
    scores: list[MemberScore] = []
    for member, take in zip(members, pending, strict=True):
        outcome = take()
        name = member.get("name") or member["refId"]
        if isinstance(outcome, Judged | Skipped):
            verdicts.append(_verdict_row(member["refId"], name, outcome, scored))
            goodness = of_judge(outcome.rating) if isinstance(outcome, Judged) else None
        else:
            rows.append(outcome.row(name))
            goodness = outcome.goodness
        weight = member.get("weight")
        scores.append(MemberScore(name, goodness, 1.0 if weight is None else float(weight), bool(member.get("gate"))))
    blend = group_score(scores)
    scored.status = "skipped" if blend.score is None else "scored"
    scored.rating, scored.justification = blend.score, blend.explanation
    scored.judge_scorer_results = verdicts or None
    return rows


DELETED = "Not scored: this scorer was deleted."


def _member_job(
    project: Project,
    member: GroupMember,
    material: JudgeMaterial,
    answer: Answer,
    trace: TraceMaterial | None,
    alive: set[str],
) -> Callable[[], Judged | Skipped | other_members.MemberOutcome]:
    if member["kind"] == "judge":
        rubric = member.get("judge")
        if rubric is None or member["refId"] not in alive:
            return lambda: Skipped(DELETED)
        return lambda: judge(project, rubric, material)
    return lambda: other_members.run(
        project,
        member,
        other_members.MemberMaterial(
            input=answer.input,
            output=answer.output,
            expected=material.expected,
            tool_calls=None if trace is None else trace.tool_calls,
            trace_id=None if trace is None else trace.trace_id,
        ),
    )
