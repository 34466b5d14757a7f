"""Which models a project uses: known to the telemetry above, asked for here through a registered reader."""

from __future__ import annotations

from collections.abc import Callable

from apps.core.times import now_ms
from apps.llm.pricing import price_of
from apps.projects.models import Project

UNPRICED_WINDOW_MS = 30 * 24 * 3600 * 1000

# (project pk, since in ms) -> names of models on token-bearing rows, those with most tokens first.
Reader = Callable[[int, int], list[str]]

_readers: list[Reader] = []


def register_reader(reader: Reader) -> None:
    """Name the function that knows; called once, in the AppConfig.ready() of the app that keeps the telemetry."""
    if reader not in _readers:
        _readers.append(reader)


def unpriced_models(*, project: Project) -> list[str]:
    """Names of models on token-bearing rows of the last 30 days that the catalog has no price for now."""
    now = now_ms()
    names = [name for reader in _readers for name in reader(project.pk, now - UNPRICED_WINDOW_MS)]
    return [name for name in dict.fromkeys(names) if name and price_of(name, now) is None]
