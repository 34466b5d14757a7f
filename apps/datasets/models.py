"""Datasets of cases to test an agent with, and their history.

A case is an entry of `questions` (`main_question` plus `follow_up_questions`, stored as sent); its position is the
`questionIndex`. The dataset owns one grading config, kept in `grading` and addressed by `grading_id`, which is used
when a run names no other grader (source 1:547-600, 1:4725-4766).
"""

from __future__ import annotations

from django.db import models

from apps.core.ids import default_id
from apps.core.models import WireModel
from apps.datasets.fields import PackedJSONField
from apps.projects.models import Project


class Dataset(WireModel):
    """A named list of cases with its own grading config and CI settings.

    `grading` holds the wire keys as sent: acceptanceCriteria, rejectionCriteria, evaluationCriteria, judgePrompt,
    judgeModel, vectorSimilarity, jaccardSimilarity, bleuScore, rougeScore, sovereigntyIndex, codeScorers.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="datasets")
    name = models.CharField(max_length=300)
    description = models.TextField(blank=True)
    number_of_requests = models.PositiveIntegerField(default=1)
    questions = models.JSONField(default=list)
    case_count = models.PositiveIntegerField(default=0)
    status = models.CharField(max_length=20, default="published")
    grading_id = models.CharField(max_length=21, unique=True, default=default_id, editable=False)
    grading = models.JSONField(default=dict)
    ci = models.JSONField(null=True, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        indexes = [models.Index(fields=["project", "-id"], name="dataset_newest")]

    def __str__(self) -> str:
        return self.name


class DatasetVersion(WireModel):
    """One entry of a dataset's history. A run keeps the version it used, whatever is edited later."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="versions")
    version = models.PositiveIntegerField()
    snapshot = PackedJSONField()
    change_summary = models.CharField(max_length=500)
    creator = models.CharField(max_length=254, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset", "version"], name="one_row_per_dataset_version")]


class CaseEmbedding(models.Model):
    """The vector of one text under one embedding model, so that no text is embedded twice."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    model = models.CharField(max_length=200)
    text_hash = models.CharField(max_length=64)
    vector = models.BinaryField(help_text="float32, little endian")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "model", "text_hash"], name="one_vector_per_text")]
