"""Which models a project's rows name; registered with apps.llm, which asks for models without a price (PROJ-042)."""

from __future__ import annotations

from django.db.models import F, Sum

from apps.tracing.models import Grain, Rollup
from apps.tracing.rollups.fold import settle

_HOUR = 3600


def models_in_use(project_pk: int, since_ms: int) -> list[str]:
    """Names of models on token-bearing rows since a moment (to the hour), those with most tokens first."""
    settle()
    rows = (
        Rollup.objects.filter(project_id=project_pk, grain=Grain.HOUR, bucket__gte=since_ms // 1000 // _HOUR * _HOUR)
        .exclude(model="")
        .values("model")
        .annotate(tokens=Sum(F("input_tokens") + F("output_tokens")))
        .filter(tokens__gt=0)
        .order_by("-tokens", "model")
        .values_list("model", flat=True)
    )
    return list(rows)
