"""What apps further up do when something happens to a run; they register in their AppConfig.ready()."""

from __future__ import annotations

from apps.core.registry import Hooks
from apps.evaluations.models import GateVerdict

# Called after a failed verdict was recorded, once for each (EVAL-185). The function must not wait for the network.
gate_failed: Hooks[[GateVerdict]] = Hooks()
