"""What judges an answer: judge scorers (rubric, offline and live profile in one), and groups of scorers."""

from __future__ import annotations

from django.db import models

from apps.core.ids import default_id
from apps.core.models import WireModel
from apps.projects.models import Project


class JudgeScorer(WireModel):
    """A rubric that a model applies (source 1:2147, 1:3550; sdk monitor/judge_scorers.py).

    `judge`: {acceptanceCriteria, rejectionCriteria, evaluationCriteria, judgePrompt, judgeModel, toolContext,
    requiresExpected}. `offline`: {numberOfRequests, isDefault, status, vectorSimilarity, jaccardSimilarity, bleuScore,
    rougeScore, sovereigntyIndex, thresholds, codeScorers}. `online`: {enabled, sampleRate, scope, alertThreshold,
    severity, idleSeconds, scopeMode, agentIds} or null; `profile_id` keys its ratings and events and is a fresh one
    whenever a live profile is made. `copied_from` is the grading config (another scorer's, or a dataset's own) that a
    live profile was to be bound to when this copy was made for it.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="judge_scorers")
    name = models.CharField(max_length=300)
    description = models.TextField(blank=True)
    judge = models.JSONField(default=dict)
    offline = models.JSONField(default=dict)
    online = models.JSONField(null=True, blank=True)
    profile_id = models.CharField(max_length=21, unique=True, default=default_id, editable=False)
    profile_name = models.CharField(
        max_length=300, blank=True, help_text="Own name of a profile made by the older route."
    )
    copied_from = models.CharField(max_length=21, blank=True)
    template_key = models.CharField(max_length=60, blank=True)
    seeded = models.BooleanField(default=False)
    builtin_key = models.CharField(max_length=60, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        indexes = [models.Index(fields=["project", "-id"], name="judge_scorer_newest")]

    def __str__(self) -> str:
        return self.name


class JudgeScorerVersion(WireModel):
    """One entry of a judge scorer's history: rubric and offline profile."""

    scorer = models.ForeignKey(JudgeScorer, on_delete=models.CASCADE, related_name="versions")
    version = models.PositiveIntegerField()
    snapshot = models.JSONField()
    change_summary = models.CharField(max_length=500)
    note = models.TextField(blank=True)
    creator = models.CharField(max_length=254, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["scorer", "version"], name="one_row_per_scorer_version")]


class ScorerGroup(WireModel):
    """Scorers of any kind, by reference, combined into one 0-10 score.

    `members`: [{kind: judge|pattern|custom, refId, weight, gate}].
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="scorer_groups")
    name = models.CharField(max_length=300)
    description = models.TextField(blank=True)
    members = models.JSONField(default=list)
    online = models.JSONField(null=True, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.name


class SeededScorers(models.Model):
    """Which shipped judges a project has been given, so that one the user deleted is never made again."""

    project = models.OneToOneField(Project, on_delete=models.CASCADE, primary_key=True, related_name="seeded_scorers")
    keys = models.JSONField(default=list)
