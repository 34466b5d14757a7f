"""URL helpers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpResponseBase
from django.urls import URLPattern, path


def monitoring_paths(route: str, view: Callable[..., HttpResponseBase], name: str, **kwargs: Any) -> list[URLPattern]:
    """One route under both prefixes: everything under /monitor answers the same under /agent-monitoring and back."""
    return [
        path(f"agent-monitoring/{route}", view, kwargs or None, name=name),
        path(f"monitor/{route}", view, kwargs or None, name=f"{name}-alias"),
    ]
