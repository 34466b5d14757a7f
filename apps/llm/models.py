"""The model catalog with dated prices, and provider keys."""

from __future__ import annotations

from django.db import models

from apps.core.models import WireModel
from apps.projects.models import Organization


class CatalogModel(models.Model):
    """A model that judges can use and whose prices cost spans. `model_id` is the exact string sent to the provider."""

    class Provider(models.TextChoices):
        OPENAI = "openai"
        ANTHROPIC = "anthropic"
        GEMINI = "gemini"
        CUSTOM = "custom"

    organization = models.ForeignKey(Organization, null=True, blank=True, on_delete=models.CASCADE)
    model_id = models.CharField(max_length=200)
    provider = models.CharField(max_length=20, choices=Provider.choices)
    label = models.CharField(max_length=200)
    is_default = models.BooleanField(default=False)
    base_url = models.URLField(max_length=500, blank=True)
    api_key_encrypted = models.TextField(blank=True)
    api_key_masked = models.CharField(max_length=40, blank=True)
    seeded = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["model_id"], condition=models.Q(organization=None), name="one_shared_row_per_model"
            ),
            models.UniqueConstraint(fields=["organization", "model_id"], name="one_own_row_per_model"),
            models.UniqueConstraint(
                fields=["is_default"],
                condition=models.Q(is_default=True, organization=None),
                name="one_shared_default_model",
            ),
        ]

    def __str__(self) -> str:
        return self.model_id


class ModelPrice(models.Model):
    """Prices in USD per million tokens that hold from a moment on; the newest that has begun counts."""

    model = models.ForeignKey(CatalogModel, on_delete=models.CASCADE, related_name="prices")
    valid_from = models.DateTimeField()
    input_per_m = models.FloatField("input $/M")
    output_per_m = models.FloatField("output $/M")
    cache_read_per_m = models.FloatField("cache read $/M", null=True, blank=True)
    cache_write_per_m = models.FloatField("cache write $/M", null=True, blank=True)

    class Meta:
        ordering = ["valid_from"]
        constraints = [models.UniqueConstraint(fields=["model", "valid_from"], name="one_price_per_moment")]

    def __str__(self) -> str:
        return f"{self.input_per_m:g} / {self.output_per_m:g} from {self.valid_from:%Y-%m-%d}"


class ProviderKey(WireModel):
    """A provider's key saved in Settings; instance-wide when it has no organization."""

    organization = models.ForeignKey(Organization, null=True, blank=True, on_delete=models.CASCADE)
    provider = models.CharField(max_length=20)
    key_encrypted = models.TextField()
    masked = models.CharField(max_length=40)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["provider"], condition=models.Q(organization=None), name="one_shared_key_per_provider"
            ),
            models.UniqueConstraint(fields=["organization", "provider"], name="one_own_key_per_provider"),
        ]

    def __str__(self) -> str:
        return f"{self.provider} ({self.masked})"


class ModelCall(models.Model):
    """One call to a model: what for, how long, what it cost, and why it failed. Never its text."""

    id = models.BigAutoField(primary_key=True)
    project = models.ForeignKey("projects.Project", null=True, on_delete=models.CASCADE)
    purpose = models.CharField(max_length=30, help_text="judge, draft, synthesis, analysis, pairwise, embedding …")
    model = models.CharField(max_length=200)
    provider = models.CharField(max_length=20)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    latency_ms = models.FloatField(null=True)
    input_tokens = models.BigIntegerField(null=True)
    output_tokens = models.BigIntegerField(null=True)
    cache_read_tokens = models.BigIntegerField(null=True)
    cache_write_tokens = models.BigIntegerField(null=True)
    cost_usd = models.FloatField(null=True)
    attempts = models.PositiveSmallIntegerField(default=1)
    failure = models.CharField(max_length=300, blank=True)
