"""Span kinds and framework labels: one function each decides them, for every door (source 1:8811-8922)."""

from __future__ import annotations

import re

KINDS = frozenset(
    (
        "agent",
        "llm",
        "tool",
        "retrieval",
        "chain",
        "embedding",
        "reranker",
        "guardrail",
        "evaluator",
        "prompt",
        "memory",
    )
)
# Words of OpenInference, OTel GenAI, Langfuse and MLflow that mean one of our kinds (source 1:8898-8909).
_FOLDED = {kind: kind for kind in KINDS} | {
    "retriever": "retrieval",
    "generation": "llm",
    "chat": "llm",
    "text_completion": "llm",
    "chat_model": "llm",
    "generate_content": "llm",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "embeddings": "embedding",
    "recall": "memory",
}
_AUTO_NAME = re.compile(r"(?:(LLM Call \d+)|(Retrieval \d+)|(Memory .*))\Z", re.DOTALL)
FRAMEWORK_LENGTH = 64


def fold_kind(word: str | None) -> str | None:
    """The kind a word of any vocabulary states, whatever its case; None for an unknown word."""
    if not word:
        return None
    return _FOLDED.get(word) or _FOLDED.get(word.strip().strip('"').lower())


def infer_kind(*, name: str, model: str | None, has_tool_calls: bool) -> str:
    """The ladder for a span that states no kind (source 1:8859-8863)."""
    if model:
        return "llm"
    if has_tool_calls:
        return "tool"
    if name[:1] in "LRM" and (match := _AUTO_NAME.match(name)):
        return ("llm", "retrieval", "memory")[match.lastindex - 1] if match.lastindex else "chain"
    return "chain"


def fold_framework(label: str | None) -> str | None:
    """A platform label trimmed, lowercased and cut to 64 characters; None when blank (source 1:8697-8712)."""
    if not label:
        return None
    return label.strip().lower()[:FRAMEWORK_LENGTH].strip() or None
