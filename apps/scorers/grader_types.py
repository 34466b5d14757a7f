"""The frozen grader of a run (`Run.grader`): what `grading.resolve_grader` makes and `scoring.score_answer` reads.

Plain JSON, so that a run keeps what it was judged by whatever is edited later. Every key may be missing but those of
`Required`; unknown keys are ignored.

    {"primary": Member, "extras": [Member], "group": Group | null, "repetitions": 1, "comparisonModels": []}

With a group, `primary` carries its id and name with kind "group" and `extras` is empty.
"""

from __future__ import annotations

from typing import Any, Literal, Required, TypedDict


class VectorMetric(TypedDict, total=False):
    """The embedding model of the vector metric, None for the provider's default."""

    model: str | None


class Metrics(TypedDict, total=False):
    """Which similarity metrics run; `vector` is null when it does not."""

    vector: VectorMetric | None
    jaccard: bool
    bleu: bool
    rouge: bool


class CodeScorer(TypedDict, total=False):
    """An attached JavaScript check; `code` is a function body."""

    id: str
    name: str
    code: Required[str]
    enabled: bool


class Member(TypedDict, total=False):
    """One rubric: a judge scorer ("judge"), a dataset's or standalone grading config ("dataset"), or a group's head."""

    id: Required[str]
    name: Required[str]
    kind: Literal["judge", "dataset", "group"]
    acceptanceCriteria: str | None
    rejectionCriteria: str | None
    evaluationCriteria: str | None
    judgePrompt: str | None
    judgeModel: str | None
    toolContext: Literal["none", "simple", "detailed"]
    requiresExpected: bool
    metrics: Metrics
    codeScorers: list[CodeScorer]


class GroupMember(TypedDict, total=False):
    """A scorer of a group. `judge` is its rubric (kind "judge"); `spec` what another kind needs, as frozen.

    A judge member without `judge`, like one whose scorer is gone when a result is scored, is listed as not scored.
    """

    kind: Required[Literal["judge", "pattern", "custom"]]
    refId: Required[str]
    name: str
    weight: float
    gate: bool
    judge: Member | None
    spec: dict[str, Any] | None


class Group(TypedDict, total=False):
    """A scorer group with its members in order."""

    id: Required[str]
    name: Required[str]
    members: Required[list[GroupMember]]


class Grader(TypedDict, total=False):
    """Everything that judges one run."""

    primary: Required[Member]
    extras: list[Member]
    group: Group | None
    repetitions: int
    comparisonModels: list[str]
