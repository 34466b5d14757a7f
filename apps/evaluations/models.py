"""Runs of an agent over a dataset, their judged results, gates, analyses, comparisons and hosted-style CI runs.

A run freezes what it is judged by (`snapshot` of the dataset version and `grader`), so later edits change nothing.
Counts and sums are kept on the run, per case and per extra scorer, in the transaction that scores a result: statistics
never re-read every row. A result that could not be judged has no rating and never counts as a number.
"""

from __future__ import annotations

from django.db import models

from apps.core.models import WireModel
from apps.projects.models import Project


class Tally(models.Model):
    """Running figures of ratings: enough for mean, extremes and variance without reading the rows again."""

    rated = models.PositiveIntegerField(default=0)
    rating_sum = models.FloatField(default=0)
    rating_squares = models.FloatField(default=0)
    rating_min = models.FloatField(null=True)
    rating_max = models.FloatField(null=True)

    class Meta:
        abstract = True


class Run(WireModel, Tally):
    """One evaluation of one agent over one dataset version (source 1:985-1012)."""

    class Status(models.TextChoices):
        IN_PROGRESS = "in_progress"
        COMPLETED = "completed"
        FAILED = "failed"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="runs")
    dataset_id = models.CharField(max_length=21, db_index=True, help_text="Bare id: it outlives the dataset.")
    dataset_name = models.CharField(max_length=300, blank=True)
    dataset_version = models.PositiveIntegerField(null=True)
    snapshot = models.JSONField(help_text="Questions and grading of the dataset version used.")
    evaluation_settings_id = models.CharField(max_length=21, null=True)
    scorer_group_id = models.CharField(max_length=21, null=True)
    additional_scorer_ids = models.JSONField(null=True)
    grader = models.JSONField(help_text="Frozen grader: primary, extra judges or group, metrics, code scorers.")
    subject = models.JSONField(null=True)
    run_source = models.CharField(max_length=40, blank=True)
    sdk = models.JSONField(null=True)
    split = models.CharField(max_length=200, blank=True)
    version_label = models.CharField(max_length=200, blank=True)
    smoke_variants = models.JSONField(null=True)
    warnings = models.JSONField(default=list)
    status = models.CharField(max_length=12, choices=Status.choices, default=Status.IN_PROGRESS)
    expected_results = models.PositiveIntegerField(default=0, help_text="For the progress bar; 0 when unknown.")
    result_count = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    variants = models.PositiveIntegerField(default=0)
    finalized_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["project", "-id"], name="run_newest"),
            models.Index(fields=["project", "dataset_id", "-id"], name="run_of_dataset"),
        ]


class CaseTally(Tally):
    """The rated rows of one question of a run, variants left out."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="case_tallies")
    question_index = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "question_index"], name="one_tally_per_case")]


class ScorerTally(Tally):
    """The verdicts of one extra judge, group member or group of a run."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="scorer_tallies")
    scorer_id = models.CharField(max_length=40)
    name = models.CharField(max_length=320)
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "scorer_id"], name="one_tally_per_scorer")]


class Result(WireModel):
    """One accepted idempotency key of a run.

    The row is inserted as `pending` before anything is judged, so a racing duplicate finds it and waits for the verdict
    instead of paying for a second one; `claimed_until` lets another worker take over when the first died.

    `rating` is null on `failed` rows (the result carried an error) although they count as 0 in every average:
    aggregate with `selectors.RATED_VALUE` over `selectors.rated_rows()`, never over `rating` itself.
    """

    class Status(models.TextChoices):
        PENDING = "pending"
        SCORED = "scored"
        SKIPPED = "skipped"
        FAILED = "failed"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="results")
    idempotency_key = models.CharField(max_length=500)
    batch_id = models.CharField(max_length=200, blank=True)
    case_id = models.CharField(max_length=300)
    question_index = models.PositiveIntegerField(null=True, help_text="Null when the sender named no question.")
    run_number = models.PositiveIntegerField(default=1)
    status = models.CharField(max_length=8, choices=Status.choices, default=Status.PENDING)
    claimed_until = models.DateTimeField(null=True)
    rating = models.FloatField(null=True)
    justification = models.TextField(null=True)
    input = models.JSONField(null=True)
    output = models.JSONField(null=True)
    error = models.JSONField(null=True)
    latency_ms = models.FloatField(null=True)
    input_tokens = models.BigIntegerField(null=True)
    output_tokens = models.BigIntegerField(null=True)
    trace_id = models.CharField(max_length=21, null=True)
    retrieval_context = models.JSONField(null=True)
    metadata = models.JSONField(null=True)
    observable_trace = models.JSONField(null=True)
    is_variant = models.BooleanField(default=False)
    variant_text = models.TextField(null=True)
    vector_similarity = models.FloatField(null=True)
    jaccard_similarity = models.FloatField(null=True)
    bleu_score = models.FloatField(null=True)
    rouge_score = models.FloatField(null=True)
    code_scorer_results = models.JSONField(null=True)
    judge_scorer_results = models.JSONField(null=True)
    raw_verdict = models.TextField(blank=True, help_text="What the judge answered, when it could not be used.")
    judge_cost_usd = models.FloatField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "idempotency_key"], name="one_result_per_key")]
        indexes = [
            models.Index(fields=["run", "question_index", "run_number"], name="result_of_case"),
            models.Index(fields=["run", "rating"], name="result_worst_first"),
        ]


class GateVerdict(WireModel):
    """A recorded CI gate; the verdict itself is computed afresh on every call (source 1:126-172, 1:350-353)."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="gate_verdicts")
    dataset_id = models.CharField(max_length=21)
    dataset_name = models.CharField(max_length=300, blank=True)
    passed = models.BooleanField()
    average_rating = models.FloatField(null=True)
    baseline_run_id = models.CharField(max_length=21, null=True)
    baseline_average = models.FloatField(null=True)
    gated_scorer = models.JSONField(null=True)
    caller = models.CharField(max_length=60, null=True)
    checks = models.JSONField(default=list)

    class Meta:
        indexes = [models.Index(fields=["project", "-id"], name="gate_newest")]


class Analysis(models.Model):
    """The written analysis of a run; a new one replaces it (source 1:465-540)."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True, related_name="analysis")
    status = models.CharField(max_length=12)
    quality_mode = models.CharField(max_length=20, default="balanced")
    judges = models.JSONField(default=list)
    report = models.JSONField(null=True)
    statistics = models.JSONField(null=True)
    evidence = models.JSONField(default=list)
    failure = models.TextField(blank=True)
    warnings = models.JSONField(default=list)
    finished_at = models.DateTimeField(auto_now=True)


class PairwiseComparison(WireModel):
    """A stored head-to-head of two runs of one dataset (source 1:2484-2575); `id` is its batch id."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    run_a = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    run_b = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    both_orders = models.BooleanField(default=False)
    judge_model = models.CharField(max_length=200)
    criteria = models.TextField(blank=True)
    summary = models.JSONField()
    cases = models.JSONField(default=list)
    skipped = models.JSONField(default=list)


class CIRun(WireModel):
    """A hosted-style CI run with a per-case gate (source 1:3016-3317, 1:4431-4573)."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="ci_run")
    agent_name = models.CharField(max_length=300, blank=True)
    pass_rate_threshold = models.FloatField(default=1.0)
    rules = models.JSONField(default=dict)
    fail_fast = models.BooleanField(default=False)
    expose_inputs = models.BooleanField(default=True)
    webhook_url = models.CharField(max_length=1000, blank=True)
    git_context = models.JSONField(null=True)
    gate = models.CharField(max_length=4, blank=True)
    passed_questions = models.PositiveIntegerField(default=0)
    violations = models.JSONField(default=list)
    gate_fired = models.BooleanField(default=False)
    expires_at = models.DateTimeField()
    finalized_at = models.DateTimeField(null=True)
    webhook_sent_at = models.DateTimeField(null=True)
