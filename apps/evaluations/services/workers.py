"""The threads that judge results, one result each."""

from __future__ import annotations

from apps.core.workers import Workers

judging = Workers()
