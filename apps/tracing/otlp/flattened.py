"""Lists that instrumentations flatten into attributes, `llm.input_messages.0.message.content` and the like."""

from __future__ import annotations

from typing import Any

from apps.tracing.otlp.conventions import FAMILIES, FAMILY_PREFIXES, WRAPPERS

# Longer paths than this exist in no convention; the rest of such a path stays one name.
_MAX_SEGMENTS = 10
_LEAF = ""


def _path(tail: str) -> list[str]:
    segments = tail.split(".", _MAX_SEGMENTS)
    kept: list[str] = []
    previous_is_index = False
    for position, segment in enumerate(segments):
        # The last segment always names something, also where it happens to be called like a wrapper.
        if previous_is_index and segment in WRAPPERS and position < len(segments) - 1:
            previous_is_index = False
            continue
        kept.append(segment)
        previous_is_index = segment.isdecimal()
    return kept


def _finished(node: Any) -> Any:
    """Nested dicts whose keys are all indexes become lists in index order."""
    if not isinstance(node, dict):
        return node
    if set(node) == {_LEAF}:
        return node[_LEAF]
    if all(key.isdecimal() for key in node):
        return [_finished(node[key]) for key in sorted(node, key=lambda key: (len(key.lstrip("0")), key))]
    return {key or "value": _finished(item) for key, item in node.items()}


def _shortened(path: list[str], value: Any) -> Any:
    """Embedding vectors are thousands of numbers nobody reads: their length stands for them."""
    if path[-1] == "vector" and isinstance(value, list):
        return f"[{len(value)} numbers]"
    return value


def collect(attributes: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Take the flattened attributes `names` out of `attributes` and rebuild the list of each family, keyed by the
    family's metadata name. Attributes without an index (`llm.tools.x`) are left where they are."""
    trees: dict[str, dict[str, Any]] = {}
    for name in names:
        prefix = next(prefix for prefix in FAMILY_PREFIXES if name.startswith(prefix))
        path = _path(name[len(prefix) :])
        if not path[0].isdecimal():
            continue
        value = _shortened(path, attributes.pop(name))
        node = trees.setdefault(FAMILIES[prefix], {})
        for segment in path:
            child = node.get(segment)
            if child is None:
                child = node[segment] = {}
            node = child
        node[_LEAF] = value
    return {name: _finished(tree) for name, tree in trees.items()}
