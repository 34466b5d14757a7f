"""Writes of the model catalog (source 1:1151-1219, 1:2595-2607).

Prices are dated: an edit adds a price that holds from now (or from `effective_from`) on, so what ran before keeps the
price of its time. A model's first price holds from the beginning of time unless a date is given. Every write bumps the
catalog's version first; its row lock also makes writers wait for each other.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypedDict

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.core.api.errors import APIError, NotFound
from apps.core.encryption import encrypt, mask
from apps.core.models import InstanceSetting
from apps.llm import pricing
from apps.llm.models import CatalogModel, ModelPrice
from apps.projects.models import Project
from apps.projects.services import audit

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_SEEDED_KEY = "catalog.seeded"


class Rates(TypedDict, total=False):
    """USD per million tokens, by the column they are stored in."""

    input_per_m: float
    output_per_m: float
    cache_read_per_m: float | None
    cache_write_per_m: float | None


@dataclass(frozen=True, slots=True)
class ModelFields:
    """What a request says about a model; `...` stands for "not said"."""

    provider: Any = ...
    label: Any = ...
    base_url: Any = ...
    api_key: Any = ...
    is_default: Any = ...


@transaction.atomic
def create_model(
    *,
    model_id: str,
    fields: ModelFields,
    rates: Rates,
    effective_from: datetime | None = None,
    project: Project | None = None,
    request: Any = None,
) -> CatalogModel:
    """A new row of the catalog with its first price; raises 409 when the id is taken."""
    _changing()
    if CatalogModel.objects.filter(organization=None, model_id=model_id).exists():
        raise APIError(f"Model {model_id} already exists", 409)
    model = CatalogModel(model_id=model_id)
    _apply(model, fields)
    model.save()
    ModelPrice.objects.create(model=model, valid_from=effective_from or BEGINNING, **rates)
    _audit("model.create", model_id, ["id", *_named(fields, rates, effective_from)], project, request)
    return model


@transaction.atomic
def update_model(
    *,
    model_id: str,
    fields: ModelFields,
    rates: Rates,
    effective_from: datetime | None = None,
    project: Project | None = None,
    request: Any = None,
) -> CatalogModel:
    """Change what is said and keep the rest; rates that differ become a new dated price. Raises 404."""
    _changing()
    model = _existing(model_id)
    _apply(model, fields)
    model.save()
    if rates:
        add_price(model=model, rates=rates, valid_from=effective_from)
    _audit("model.update", model_id, _named(fields, rates, effective_from), project, request)
    return model


@transaction.atomic
def save_row(*, model: CatalogModel, fields: ModelFields, request: Any = None) -> None:
    """Save a row made or changed by a form, without its prices."""
    _changing()
    new = model._state.adding
    _apply(model, fields)
    model.save()
    action, names = ("model.create", ["id"]) if new else ("model.update", [])
    _audit(action, model.model_id, [*names, *_named(fields, Rates(), None)], None, request)


@transaction.atomic
def add_price(*, model: CatalogModel, rates: Rates, valid_from: datetime | None = None) -> ModelPrice:
    """Let rates hold from a moment on (default: now); rates not given are those that held until then."""
    _changing()
    moment = valid_from or timezone.now()
    history = list(model.prices.order_by("valid_from"))
    before = next((price for price in reversed(history) if price.valid_from <= moment), None) or (
        history[0] if history else None
    )
    names = ("input_per_m", "output_per_m", "cache_read_per_m", "cache_write_per_m")
    whole = {name: rates.get(name, getattr(before, name, None)) for name in names}
    if before is not None and before.valid_from <= moment and all(getattr(before, n) == whole[n] for n in names):
        return before
    price, _ = ModelPrice.objects.update_or_create(model=model, valid_from=moment, defaults=whole)
    return price


@transaction.atomic
def add_dated_price(*, model: CatalogModel, rates: Rates, valid_from: datetime, request: Any = None) -> None:
    """add_price() as an action of its own, with its row in the audit trail."""
    add_price(model=model, rates=rates, valid_from=valid_from)
    _audit("model.update", model.model_id, _named(ModelFields(), rates, valid_from), None, request)


@transaction.atomic
def delete_model(*, model_id: str, project: Project | None = None, request: Any = None) -> None:
    """Take a row and its prices out of the catalog; costs that are stored stay. Raises 404."""
    _changing()
    _existing(model_id).delete()
    _audit("model.delete", model_id, [], project, request)


@transaction.atomic
def seed_catalog() -> int:
    """Bring the shipped models in; called at every start, returns how many rows were added.

    A model is seeded once in the life of an install, so edits and removals of seeded rows survive (PROJ-044) and a
    later release may bring new models; the three staples come back whenever they are absent (PROJ-045). Only the very
    first seeding sets the default.
    """
    shipped = json.loads((settings.BASE_DIR / "fixtures" / "catalog.json").read_text("utf-8"))["models"]
    setting = InstanceSetting.objects.filter(key=_SEEDED_KEY).first()
    seeded: set[str] = set(setting.value) if setting else set()
    present = set(CatalogModel.objects.filter(organization=None).values_list("model_id", flat=True))
    missing = [row for row in shipped if row["id"] not in present and (row.get("staple") or row["id"] not in seeded)]
    known = seeded | {row["id"] for row in shipped}
    if not missing and known == seeded:
        return 0
    _changing()
    # Another process may have seeded while this one waited for the lock.
    present = set(CatalogModel.objects.filter(organization=None).values_list("model_id", flat=True))
    missing = [row for row in missing if row["id"] not in present]
    for row in missing:
        model = CatalogModel.objects.create(
            model_id=row["id"],
            provider=row["provider"],
            label=row["label"],
            is_default=setting is None and bool(row.get("default")),
            seeded=True,
        )
        ModelPrice.objects.create(
            model=model,
            valid_from=BEGINNING,
            input_per_m=row["input"],
            output_per_m=row["output"],
            cache_read_per_m=row.get("cacheRead"),
            cache_write_per_m=row.get("cacheWrite"),
        )
    InstanceSetting.objects.update_or_create(key=_SEEDED_KEY, defaults={"value": sorted(known)})
    return len(missing)


def _changing() -> None:
    """First step of every write: tell the others, wait for other writers, drop this process's prices."""
    pricing.bump_version()
    pricing.forget()
    transaction.on_commit(pricing.forget)


def _existing(model_id: str) -> CatalogModel:
    # Postgres refuses to look for a NUL character.
    known = "\x00" not in model_id
    model = CatalogModel.objects.filter(organization=None, model_id=model_id).first() if known else None
    if model is None:
        raise NotFound("Model not found")
    return model


def _apply(model: CatalogModel, fields: ModelFields) -> None:
    if fields.provider is not ...:
        model.provider = fields.provider
    if fields.label is not ...:
        model.label = fields.label
    if fields.base_url is not ...:
        model.base_url = fields.base_url or ""
    if model.provider != CatalogModel.Provider.CUSTOM:
        model.base_url = ""
    elif not model.base_url:
        raise APIError("baseUrl is required for a custom model")
    if fields.api_key is not ...:
        model.api_key_encrypted = encrypt(fields.api_key) if fields.api_key else ""
        model.api_key_masked = mask(fields.api_key) if fields.api_key else ""
    if fields.is_default is not ...:
        if fields.is_default:
            CatalogModel.objects.filter(organization=None, is_default=True).exclude(pk=model.pk).update(
                is_default=False
            )
        model.is_default = fields.is_default


_WIRE_NAMES = {
    "provider": "provider",
    "label": "label",
    "base_url": "baseUrl",
    "api_key": "apiKey",
    "is_default": "isDefault",
    "input_per_m": "pricePerMInputTokens",
    "output_per_m": "pricePerMOutputTokens",
    "cache_read_per_m": "pricePerMCacheReadTokens",
    "cache_write_per_m": "pricePerMCacheWriteTokens",
}


def _named(fields: ModelFields, rates: Rates, effective_from: datetime | None) -> list[str]:
    """Wire names of what a request said, for the audit trail."""
    said = [name for name in ModelFields.__dataclass_fields__ if getattr(fields, name) is not ...]
    dated = ["effectiveFrom"] if effective_from else []
    return [_WIRE_NAMES[name] for name in [*said, *rates]] + dated


def _audit(action: str, model_id: str, names: list[str], project: Project | None, request: Any) -> None:
    audit.record(
        action=action,
        project=project,
        request=request,
        summary_fields=names,
        target_type="model",
        target_id=model_id,
    )
