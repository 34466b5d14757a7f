"""What a project without traces shows: the ways to send the first one, alike on Overview and Live Traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings

from apps.dashboard import guides
from apps.dashboard.context import Shell
from apps.dashboard.current import DashboardRequest

# (guide, how many of its steps)
_WAYS = (("python", 2), ("langchain", 2), ("opentelemetry", 1), ("http", 1))


@dataclass(frozen=True, slots=True)
class Way:
    """One tab: where to send, then what to run; each block is (code, language)."""

    slug: str
    label: str
    blocks: list[tuple[str, str]]


def quickstart(request: DashboardRequest) -> dict[str, Any]:
    """What `dashboard/_quickstart.html` needs; the key stays masked until somebody copies it."""
    base_url = Shell(request).base_url
    ways = []
    for slug, steps in _WAYS:
        guide = guides.BY_SLUG[slug]
        codes = [
            (guides.fill(step.code, base_url=base_url, grpc_port=settings.OTLP_GRPC_PORT), step.language)
            for step in guide.steps[:steps]
        ]
        ways.append(Way(slug, guide.name, codes))
    return {"ways": ways, "masked_key": guides.MASKED_KEY}
