"""What one stored row adds to the aggregates, as sums that can be added and taken back.

A `Batch` gathers contributions of many rows; `encode()` is the payload of a RollupJournal row, `decode()` reads it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from apps.tracing.histogram import bucket_of
from apps.tracing.models import Outcome, Traffic
from apps.tracing.store.rows import Row, child_models_of

FIVE_MINUTES_S = 300
_EVAL = int(Traffic.EVAL_RUN)
_HEALTHY, _TOOL_FAILURE = int(Outcome.HEALTHY), int(Outcome.TOOL_FAILURE)

# Positions in the vectors, which are the aggregate columns in this order.
ROLLUP_SUMS = (
    "spans",
    "healthy",
    "failing",
    "tool_failing",
    "tool_calls",
    "tool_failures",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "priced",
    "latency_sum",
)
ROLLUP_KEY = ("project_id", "bucket", "is_root", "traffic", "agent_id", "framework", "model", "kind", "status")
TOOL_SUMS = (
    "roots",
    "calls",
    "failures",
    "failing",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "latency_sum",
)
TOOL_KEY = ("project_id", "bucket", "traffic", "tool", "agent_id", "framework", "model", "status")
MODEL_SUMS = ("roots", "healthy", "failing", "latency_sum")
MODEL_KEY = ("project_id", "bucket", "traffic", "model")
SESSION_SUMS = (
    "turn_count",
    "span_count",
    "error_count",
    "total_latency_ms",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "priced",
)


class SessionDelta(msgspec.Struct, array_like=True):
    """Change of one session: sums, and the extremes that only new rows move."""

    sums: list[float]
    first_ms: int
    last_ms: int
    stored_ms: int
    simulated: bool = False
    first_turn_id: str | None = None
    agent_id: str | None = None
    framework: str | None = None
    rescan: bool = False  # rows were deleted: extremes must be read from the spans again


# A vector of sums followed by a latency histogram.
_Entry = tuple[list[float], dict[int, int]]


class _Payload(msgspec.Struct, array_like=True):
    rollups: list[tuple[list[Any], list[float], dict[int, int]]]
    tools: list[tuple[list[Any], list[float], dict[int, int]]]
    sessions: list[tuple[int, str, SessionDelta]]
    models: list[tuple[list[Any], list[float], dict[int, int]]] = []


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Payload)


class Batch:
    """Contributions gathered by key."""

    __slots__ = ("models", "rollups", "sessions", "tools")

    def __init__(self) -> None:
        self.rollups: dict[tuple[Any, ...], _Entry] = {}
        self.tools: dict[tuple[Any, ...], _Entry] = {}
        self.models: dict[tuple[Any, ...], _Entry] = {}
        self.sessions: dict[tuple[int, str], SessionDelta] = {}

    def __bool__(self) -> bool:
        return bool(self.rollups or self.tools or self.sessions)

    def add(self, row: Row, sign: int = 1) -> None:
        """Add a row's contributions, or take them back with sign -1."""
        is_root = row.parent_span_id is None
        agent = row.agent_id or ""
        framework = row.framework or ""
        model = row.model or ""
        bucket = row.created_ms // 1000
        bucket -= bucket % FIVE_MINUTES_S
        inp = row.input_tokens or 0
        if inp:
            inp = max(0, inp - row.child_input_tokens)
        out = row.output_tokens or 0
        if out:
            out = max(0, out - row.child_output_tokens)
        cost = row.own_cost_usd
        priced = 0 if cost is None else 1
        usd = cost or 0.0
        outcome = row.outcome
        failing = 1 if outcome is not None and outcome != _HEALTHY else 0
        latency = (row.latency_ms or 0.0) if is_root else 0.0
        key = (row.project_id, bucket, is_root, row.traffic, agent, framework, model, row.kind, row.status)
        entry = self.rollups.get(key)
        if entry is None:
            entry = self.rollups[key] = ([0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0, 0.0], {})
        sums, histogram = entry
        sums[0] += sign
        if outcome is not None:
            if outcome == _HEALTHY:
                sums[1] += sign
            else:
                sums[2] += sign
                if outcome == _TOOL_FAILURE:
                    sums[3] += sign
        if is_root:
            sums[4] += sign * row.tool_count
            sums[5] += sign * row.tool_failures
        sums[6] += sign * inp
        sums[7] += sign * out
        sums[8] += sign * usd
        sums[9] += sign * priced
        if is_root and row.latency_ms is not None:
            sums[10] += sign * latency
            slot = bucket_of(latency)
            histogram[slot] = histogram.get(slot, 0) + sign
            for tool, calls, failures in row.tools:
                self._add_tool(row, sign, bucket, tool, calls, failures, (failing, inp, out, usd, latency, slot))
        elif is_root:
            for tool, calls, failures in row.tools:
                self._add_tool(row, sign, bucket, tool, calls, failures, (failing, inp, out, usd, latency, None))
        if is_root and (model or row.child_models):
            self._add_models(row, sign, bucket)
        if row.session_id is not None and row.traffic != _EVAL:
            self._add_session(row, sign, is_root, (latency, inp, out, usd, priced))

    def _add_tool(
        self, row: Row, sign: int, bucket: int, tool: str, calls: int, failures: int, values: tuple[Any, ...]
    ) -> None:
        failing, inp, out, usd, latency, slot = values
        key = (
            row.project_id,
            bucket,
            row.traffic,
            tool,
            row.agent_id or "",
            row.framework or "",
            row.model or "",
            row.status,
        )
        entry = self.tools.get(key)
        if entry is None:
            entry = self.tools[key] = ([0, 0, 0, 0, 0, 0, 0.0, 0.0], {})
        sums, histogram = entry
        sums[0] += sign
        sums[1] += sign * calls
        sums[2] += sign * failures
        sums[3] += sign * failing
        sums[4] += sign * inp
        sums[5] += sign * out
        sums[6] += sign * usd
        sums[7] += sign * latency
        if slot is not None:
            histogram[slot] = histogram.get(slot, 0) + sign

    def _add_models(self, row: Row, sign: int, bucket: int) -> None:
        names = child_models_of(row)
        if row.model:
            names.append(row.model)
        for name in names:
            key = (row.project_id, bucket, row.traffic, name)
            entry = self.models.get(key)
            if entry is None:
                entry = self.models[key] = ([0, 0, 0, 0.0], {})
            sums, histogram = entry
            sums[0] += sign
            if row.outcome is not None:
                sums[1 if row.outcome == _HEALTHY else 2] += sign
            if row.latency_ms is not None:
                sums[3] += sign * row.latency_ms
                slot = bucket_of(row.latency_ms)
                histogram[slot] = histogram.get(slot, 0) + sign

    def _add_session(self, row: Row, sign: int, is_root: bool, values: tuple[Any, ...]) -> None:
        latency, inp, out, usd, priced = values
        key = (row.project_id, row.session_id or "")
        last_ms = row.created_ms + int(row.latency_ms or 0)
        delta = self.sessions.get(key)
        if delta is None:
            delta = self.sessions[key] = SessionDelta(
                [0, 0, 0, 0.0, 0, 0, 0.0, 0], row.created_ms, last_ms, row.received_ms
            )
        elif sign > 0:
            if row.created_ms < delta.first_ms:
                delta.first_ms = row.created_ms
            if last_ms > delta.last_ms:
                delta.last_ms = last_ms
            if row.received_ms > delta.stored_ms:
                delta.stored_ms = row.received_ms
        sums = delta.sums
        sums[1] += sign
        sums[2] += sign * row.status
        sums[4] += sign * inp
        sums[5] += sign * out
        sums[6] += sign * usd
        sums[7] += sign * priced
        if is_root:
            sums[0] += sign
            sums[3] += sign * latency
            if sign > 0 and (delta.first_turn_id is None or row.id < delta.first_turn_id):
                delta.first_turn_id = row.id
                delta.agent_id = row.agent_id
                delta.framework = row.framework
        if row.simulated:
            delta.simulated = True

    def remove_deleted(self, row: Row) -> None:
        """Take back a row that is being deleted; its session reads its extremes again."""
        self.add(row, -1)
        if row.session_id is not None and row.traffic != _EVAL:
            self.sessions[(row.project_id, row.session_id)].rescan = True

    def encode(self) -> bytes:
        """The journal payload."""
        return _encoder.encode(
            [
                [[key, sums, histogram] for key, (sums, histogram) in self.rollups.items()],
                [[key, sums, histogram] for key, (sums, histogram) in self.tools.items()],
                [[key[0], key[1], delta] for key, delta in self.sessions.items()],
                [[key, sums, histogram] for key, (sums, histogram) in self.models.items()],
            ]
        )

    def merge_encoded(self, payload: bytes) -> None:
        """Add the contributions of a journal payload."""
        decoded = _decoder.decode(payload)
        for target, entries in (
            (self.rollups, decoded.rollups),
            (self.tools, decoded.tools),
            (self.models, decoded.models),
        ):
            for key, sums, histogram in entries:
                entry = target.get(tuple(key))
                if entry is None:
                    target[tuple(key)] = (sums, histogram)
                else:
                    _add_into(entry[0], sums)
                    counts = entry[1]
                    for slot, count in histogram.items():
                        counts[slot] = counts.get(slot, 0) + count
        for project_id, session_id, delta in decoded.sessions:
            known = self.sessions.get((project_id, session_id))
            if known is None:
                self.sessions[(project_id, session_id)] = delta
            else:
                merge_session(known, delta)


def merge_session(target: SessionDelta, other: SessionDelta) -> None:
    """Add one change of a session into another."""
    _add_into(target.sums, other.sums)
    target.first_ms = min(target.first_ms, other.first_ms)
    target.last_ms = max(target.last_ms, other.last_ms)
    target.stored_ms = max(target.stored_ms, other.stored_ms)
    target.simulated = target.simulated or other.simulated
    target.rescan = target.rescan or other.rescan
    if other.first_turn_id is not None and (target.first_turn_id is None or other.first_turn_id < target.first_turn_id):
        target.first_turn_id = other.first_turn_id
        target.agent_id = other.agent_id
        target.framework = other.framework


def _add_into(target: list[float], other: list[float]) -> None:
    for position, value in enumerate(other):
        target[position] += value
