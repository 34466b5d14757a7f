"""The registry of what a project export holds: one entity for each project-scoped table (source 1:8086-8134).

An app that owns exportable rows registers them in its `AppConfig.ready()`. Names that clients know but whose part of
the product has no rows yet stand in `KNOWN`: they are listed with 0 rows and stream nothing, so that a dump of every
listed entity works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import BinaryField, Model, QuerySet

from apps.core.ids import time_prefix
from apps.core.times import datetime_to_iso, from_ms

# In the order of the manifest (source 1:8095-8110); further ones follow in the order they are registered.
KNOWN = (
    "traces",
    "signals",
    "signal-feedback",
    "events",
    "classifications",
    "runs",
    "run-results",
    "gate-results",
    "pairwise-comparisons",
    "datasets",
    "evaluation-settings",
    "dataset-versions",
    "evaluation-settings-versions",
    "evaluation-analyses",
    "review-queue",
    "feedback",
    "outcomes",
    "session-scores",
    "patterns",
    "online-evaluators",
    "custom-evaluators",
    "rules",
    "playground-profiles",
    "agents",
    "monitor-profiles",
    "scorer-groups",
    "alert-rules",
    "alert-events",
    "prompts",
    "tool-schemas",
    "improvement-groups",
    "improvement-reports",
    "improvement-proposals",
)


@dataclass(frozen=True)
class Entity:
    """Rows of one kind.

    `count(project)` is the live number of rows; `rows(project, since_ms)` yields them oldest first as JSON-ready
    objects in the stored shape, those at or after `since_ms` (milliseconds since 1970) when it is given, and must page
    by keyset so that memory stays flat. No row may hold a secret. `models` are the tables behind it.
    """

    name: str
    count: Callable[[Any], int]
    rows: Callable[[Any, int | None], Iterator[Any]]
    models: tuple[type[Model], ...] = ()


_entities: dict[str, Entity] = {}
# Project-scoped tables that are no part of an export, with the reason.
_left_out: dict[type[Model], str] = {}


def register(entity: Entity) -> None:
    """Make an entity exportable; a name again replaces it."""
    _entities[entity.name] = entity


def leave_out(model: type[Model], reason: str) -> None:
    """Say why a project-scoped table is not exported: it is derived, internal, or holds secrets."""
    _left_out[model] = reason


def _nothing(name: str) -> Entity:
    return Entity(name, lambda project: 0, lambda project, since_ms: iter(()))


def entities() -> list[Entity]:
    """Every entity of the manifest, in its order."""
    names = dict.fromkeys([*KNOWN, *_entities])
    return [_entities.get(name) or _nothing(name) for name in names]


def entity(name: str) -> Entity | None:
    """One entity by its name, or None."""
    if name in _entities:
        return _entities[name]
    return _nothing(name) if name in KNOWN else None


def covered_models() -> set[type[Model]]:
    """Every model that is exported or deliberately left out."""
    exported = {model for item in _entities.values() for model in item.models}
    return exported | set(_left_out)


def by_keyset(
    queryset: QuerySet[Any],
    since_ms: int | None,
    *,
    key: str = "id",
    time_field: str | None = None,
    batch: int = 500,
) -> Iterator[Any]:
    """Rows of a queryset in the order of a unique column, `batch` at a time.

    `since_ms` filters on `time_field`, a datetime column, or, when there is none, on the time that ids carry.
    """
    if since_ms is not None:
        if time_field is None:
            queryset = queryset.filter(**{f"{key}__gte": time_prefix(since_ms)})
        else:
            queryset = queryset.filter(**{f"{time_field}__gte": from_ms(since_ms)})
    queryset = queryset.order_by(key)
    last = None
    while True:
        page: Sequence[Any] = list((queryset if last is None else queryset.filter(**{f"{key}__gt": last}))[:batch])
        yield from page
        if len(page) < batch:
            return
        last = getattr(page[-1], key)


def model_entity(
    name: str,
    model: type[Model],
    *,
    project: str = "project",
    key: str = "id",
    time_field: str | None = "created_at",
    without: Sequence[str] = (),
) -> Entity:
    """An entity whose rows are the columns of a model in camelCase, with `id`, `projectId` and ISO times.

    `project` is the look-up of the project from the model, `key` its unique column to page by, `without` the columns
    that hold secrets. A model without a time of its own is filtered by the time its ids carry (`time_field=None`).
    """
    columns = [
        (_camel(field.attname), field.attname)
        for field in model._meta.concrete_fields
        if field.name not in without and field.attname != "project_id" and not isinstance(field, BinaryField)
    ]

    def count(owner: Any) -> int:
        return model._default_manager.filter(**{project: owner}).count()

    def rows(owner: Any, since_ms: int | None) -> Iterator[dict[str, Any]]:
        found = model._default_manager.filter(**{project: owner})
        for row in by_keyset(found, since_ms, key=key, time_field=time_field):
            values = {wire: _plain(getattr(row, column)) for wire, column in columns}
            yield {"id": row.pk, "projectId": owner.uid, **values}

    return Entity(name, count, rows, (model,))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _plain(value: Any) -> Any:
    return datetime_to_iso(value) if isinstance(value, datetime) else value
