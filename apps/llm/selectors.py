"""Reads of the model catalog."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from apps.llm.models import CatalogModel, ModelPrice

# Serves judges when no row of the catalog is the default (PROJ-038).
FALLBACK_JUDGE_MODEL = "gpt-5.6-luna"


@dataclass(frozen=True, slots=True)
class CatalogRow:
    """A model with the price that holds now; `price` is the first one to come when none has begun yet."""

    model: CatalogModel
    price: ModelPrice | None
    history: list[ModelPrice]


def catalog_rows(*, model_id: str | None = None, now: datetime | None = None) -> list[CatalogRow]:
    """The catalog, the default row first and the rest by id; two queries whatever its size."""
    moment = now or timezone.now()
    models = CatalogModel.objects.filter(organization=None).prefetch_related("prices")
    if model_id is not None:
        models = models.filter(model_id=model_id)
    rows = []
    for model in models:
        history = sorted(model.prices.all(), key=lambda price: price.valid_from)
        current = history[0] if history else None
        for price in history:
            if price.valid_from <= moment:
                current = price
        rows.append(CatalogRow(model, current, history))
    # In Python: the order by bytes is the same on every database and collation.
    rows.sort(key=lambda row: (not row.model.is_default, row.model.model_id))
    return rows


def default_judge_model() -> str:
    """The model of judges that name none."""
    model = CatalogModel.objects.filter(organization=None, is_default=True).first()
    return model.model_id if model else FALLBACK_JUDGE_MODEL
