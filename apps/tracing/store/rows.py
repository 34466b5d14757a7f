"""The stored row as the write side handles it, in the order of the table's columns."""

from __future__ import annotations

from operator import attrgetter

import msgspec

CORE_COLUMNS = (
    "id",
    "project_id",
    "span_id",
    "parent_span_id",
    "root_id",
    "session_id",
    "agent_id",
    "name",
    "kind",
    "status",
    "traffic",
    "outcome",
    "framework",
    "model",
    "created_ms",
    "received_ms",
    "start_ns",
    "latency_ms",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "child_input_tokens",
    "child_output_tokens",
    "child_cache_read_tokens",
    "child_cache_write_tokens",
    "cost_usd",
    "own_cost_usd",
    "tool_count",
    "tool_failures",
    "child_models",
)
PAYLOAD_COLUMNS = ("error", "input", "output", "tool_calls", "metadata", "performance_summary")
COLUMNS = CORE_COLUMNS + PAYLOAD_COLUMNS
# What a later arrival may change in a stored row: its place in the tree, its children's sums, its own cost.
LINK_COLUMNS = (
    "root_id",
    "session_id",
    "agent_id",
    "traffic",
    "child_input_tokens",
    "child_output_tokens",
    "child_cache_read_tokens",
    "child_cache_write_tokens",
    "own_cost_usd",
    "child_models",
)


class Row(msgspec.Struct, gc=False):
    """One span row. For rows loaded to be changed, the payloads are absent (they never change)."""

    id: str
    project_id: int
    span_id: str | None
    parent_span_id: str | None
    root_id: str | None
    session_id: str | None
    agent_id: str | None
    name: str
    kind: str
    status: int
    traffic: int
    outcome: int | None
    framework: str | None
    model: str | None
    created_ms: int
    received_ms: int
    start_ns: int | None
    latency_ms: float | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    child_input_tokens: int = 0
    child_output_tokens: int = 0
    child_cache_read_tokens: int = 0
    child_cache_write_tokens: int = 0
    cost_usd: float | None = None
    own_cost_usd: float | None = None
    tool_count: int = 0
    tool_failures: int = 0
    child_models: str | None = None
    error: str | None = None
    input: str | None = None
    output: str | None = None
    tool_calls: str | None = None
    metadata: str | None = None
    performance_summary: str | None = None
    # Not columns:
    tools: tuple[tuple[str, int, int], ...] = ()  # distinct tool names of a root with calls and failures of each
    simulated: bool = False
    agent_ref: str | None = None
    trace_id: str | None = None  # the OTel trace; as session_id it only stands in for a session nobody named
    organization_id: str | None = None
    pattern_ids: list[str] | None = None  # of a checked root: the only patterns to look for

    @property
    def is_root(self) -> bool:
        """A trace: a row without a parent."""
        return self.parent_span_id is None


_models_decoder = msgspec.json.Decoder(list[str])


def child_models_of(row: Row) -> list[str]:
    """The models a root's descendants ran on, other than its own."""
    return _models_decoder.decode(row.child_models) if row.child_models else []


def add_child_models(root: Row, models: set[str]) -> None:
    """Note models that descendants of a root ran on."""
    known = set(child_models_of(root))
    if not models - known <= {root.model}:
        root.child_models = msgspec.json.encode(sorted((known | models) - {root.model})).decode()


column_values = attrgetter(*COLUMNS)
link_values = attrgetter(*LINK_COLUMNS, "id")
