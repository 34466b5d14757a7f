"""A project's monitoring settings (source: sdk monitor/client.py:383-393)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from django.db import transaction

from apps.core.api.bodies import is_number
from apps.core.registry import Hooks
from apps.projects.models import MonitoringDefaults, Project
from apps.projects.services import audit

_MAX_INTEGER = 2**31 - 1


def _is_rate(value: Any) -> bool:
    return is_number(value) and 0 <= value <= 1


def _is_whole(value: Any) -> bool:
    return is_number(value) and value == int(value) and abs(value) <= _MAX_INTEGER


def _is_keys(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= 200
        and all(isinstance(key, str) and 0 < len(key) <= 100 and "\x00" not in key for key in value)
    )


def _is_mode(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 50 and "\x00" not in value


def _is_threshold(value: Any) -> bool:
    return value is None or (is_number(value) and value >= 0)


class _Setting(NamedTuple):
    attribute: str
    accepts: Callable[[Any], bool]
    stored: Callable[[Any], Any]


# Wire name -> column, what is accepted, how it is stored. The last three are kept and returned but gate nothing.
_SETTINGS: dict[str, _Setting] = {
    "enabledBuiltinPatterns": _Setting("enabled_builtin_patterns", _is_keys, lambda keys: list(dict.fromkeys(keys))),
    "topicsEnabled": _Setting("topics_enabled", lambda value: isinstance(value, bool), bool),
    "topicsSampleRate": _Setting("topics_sample_rate", _is_rate, float),
    "retentionDays": _Setting("retention_days", _is_whole, int),
    "coverageMode": _Setting("coverage_mode", _is_mode, str),
    "sampleRate": _Setting("sample_rate", _is_rate, float),
    "latencyThresholdMs": _Setting("latency_threshold_ms", _is_threshold, lambda v: None if v is None else float(v)),
}

# Called with the project's primary key inside the transaction that changed its monitoring defaults.
changed: Hooks[[int]] = Hooks()


def monitoring_defaults_of(project: Project) -> MonitoringDefaults:
    """The project's row; a project made without one gets it here."""
    return MonitoringDefaults.objects.get_or_create(project_id=project.pk)[0]


def wire_monitoring_defaults(row: MonitoringDefaults) -> dict[str, Any]:
    """The row as the API shows it."""
    return {name: getattr(row, setting.attribute) for name, setting in _SETTINGS.items()}


@transaction.atomic
def update_monitoring_defaults(*, project: Project, changes: dict[str, Any], request: Any = None) -> MonitoringDefaults:
    """Apply a sparse change: only the keys sent; unknown keys and values of a wrong type or range are ignored."""
    MonitoringDefaults.objects.get_or_create(project_id=project.pk)
    row = MonitoringDefaults.objects.select_for_update().get(project_id=project.pk)
    accepted = {
        name: setting for name, setting in _SETTINGS.items() if name in changes and setting.accepts(changes[name])
    }
    if accepted:
        for name, setting in accepted.items():
            setattr(row, setting.attribute, setting.stored(changes[name]))
        row.save(update_fields=[setting.attribute for setting in accepted.values()])
        changed.call(project.pk)
        audit.record(
            action="settings.update",
            project=project,
            request=request,
            summary_fields=accepted,
            target_type="monitoring-defaults",
            target_id=project.uid,
        )
    return row
