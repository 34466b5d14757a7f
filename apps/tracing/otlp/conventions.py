"""Which attribute of which convention fills which field: the tables `mapping` works by.

Per field the names stand in order of precedence (source 1:8652-8677). Attributes that lose to a better one, and all
that stand in no table, are kept in the row's metadata under their own names.
"""

from __future__ import annotations

from typing import Final

# Payload conventions that JSON-encode every value, text included.
ENCODED_PREFIXES: Final = ("mlflow.", "traceloop.", "gcp.vertex.agent.", "ai.")
PLAIN: Final = frozenset({"ai.response.text"})

SLOTS: Final[dict[str, tuple[str, ...]]] = {
    "input": (
        "gen_ai.input.messages",
        "gen_ai.prompt",
        "input.value",
        "mlflow.spanInputs",
        "traceloop.entity.input",
        "ai.prompt.messages",
        "ai.prompt",
        "ai.toolCall.args",
        "ai.values",
        "ai.value",
        "langfuse.observation.input",
        "langfuse.trace.input",
        "gcp.vertex.agent.llm_request",
        "gcp.vertex.agent.tool_call_args",
        "pydantic_ai.all_messages",
        "all_messages_events",
        "tool_arguments",
        "gen_ai.retrieval.query.text",
        "reranker.query",
    ),
    "output": (
        "gen_ai.output.messages",
        "gen_ai.completion",
        "output.value",
        "mlflow.spanOutputs",
        "traceloop.entity.output",
        "ai.response.text",
        "ai.response.object",
        "ai.response.toolCalls",
        "ai.toolCall.result",
        "langfuse.observation.output",
        "langfuse.trace.output",
        "gcp.vertex.agent.llm_response",
        "gcp.vertex.agent.tool_response",
        "final_result",
        "tool_response",
        "gen_ai.retrieval.documents",
    ),
    "system": ("gen_ai.system_instructions",),
    "model": (
        "gen_ai.request.model",
        "gen_ai.response.model",
        "llm.model_name",
        "llm.request.model",
        "llm.response.model",
        "embedding.model_name",
        "reranker.model_name",
        "mlflow.llm.model",
        "ai.model.id",
        "langfuse.observation.model.name",
    ),
    "input_tokens": (
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
        "llm.usage.prompt_tokens",
        "ai.usage.inputTokens",
        "ai.usage.promptTokens",
    ),
    "output_tokens": (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
        "llm.usage.completion_tokens",
        "ai.usage.outputTokens",
        "ai.usage.completionTokens",
    ),
    "cache_read": (
        "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.details.cache_read_input_tokens",
        "gen_ai.usage.details.cached_tokens",
        "llm.token_count.prompt_details.cache_read",
        "llm.usage.cache_read_input_tokens",
        "ai.usage.cachedInputTokens",
    ),
    "cache_write": (
        "gen_ai.usage.cache_creation_input_tokens",
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.cache_write_input_tokens",
        "gen_ai.usage.cache_write.input_tokens",
        "gen_ai.usage.details.cache_creation_input_tokens",
        "gen_ai.usage.details.cache_write_tokens",
        "llm.token_count.prompt_details.cache_write",
        "llm.usage.cache_creation_input_tokens",
    ),
    # JSON objects of counts, read when the plain names are missing.
    "usage": ("mlflow.chat.tokenUsage", "langfuse.observation.usage_details"),
    "provider": ("gen_ai.provider.name", "gen_ai.system"),
    "session": (
        "agentx.session_id",
        "session.id",
        "gen_ai.conversation.id",
        "langfuse.session.id",
        "mlflow.trace.session",
        "traceloop.association.properties.session_id",
        "ai.telemetry.metadata.sessionId",
    ),
    "prompt_name": (
        "agentx.prompt_name",
        "langfuse.observation.prompt.name",
        "llm.prompt_template.name",
        "traceloop.prompt.key",
    ),
    "prompt_version": (
        "agentx.version",
        "langfuse.observation.prompt.version",
        "llm.prompt_template.version",
        "traceloop.prompt.version",
    ),
    # Each kind source is a slot of its own: an unknown word falls through to the next source.
    "kind:0": ("openinference.span.kind",),
    "kind:1": ("gen_ai.operation.name",),
    "kind:2": ("mlflow.spanType",),
    "kind:3": ("langfuse.observation.type",),
    "kind:4": ("traceloop.span.kind",),
    "kind:5": ("ai.operationId",),
    "tool_name": ("gen_ai.tool.name", "tool.name", "ai.toolCall.name"),
    "tool_arguments": ("gen_ai.tool.call.arguments",),
    "tool_result": ("gen_ai.tool.call.result",),
    "tools": ("gen_ai.tool.definitions", "mlflow.chat.tools", "ai.prompt.tools"),
    # Seconds.
    "first_token_s": (
        "gen_ai.response.time_to_first_chunk",
        "gen_ai.server.time_to_first_token",
        "gen_ai.response.time_to_first_token",
    ),
    # Milliseconds.
    "first_token_ms": ("ai.response.msToFirstChunk", "ai.stream.msToFirstChunk"),
    # ISO 8601 text.
    "first_token_at": ("langfuse.observation.completion_start_time",),
    "streaming": ("gen_ai.request.stream", "gen_ai.is_streaming", "llm.is_streaming", "gen_ai.request.is_stream"),
    "input_type": ("input.mime_type",),
    "output_type": ("output.mime_type",),
}

# Input, output, cache read and cache write inside the objects of the slot "usage".
USAGE_NAMES: Final = (
    ("input_tokens", "input", "prompt_tokens"),
    ("output_tokens", "output", "completion_tokens"),
    ("cache_read_input_tokens", "input_cached_tokens", "cached_input_tokens"),
    ("cache_creation_input_tokens", "cache_write_input_tokens"),
)

# attribute -> (slot, precedence; lower is better)
TARGETS: Final[dict[str, tuple[str, int]]] = {
    name: (slot, rank) for slot, names in SLOTS.items() for rank, name in enumerate(names)
}
KIND_SLOTS: Final = tuple(sorted(slot for slot in SLOTS if slot.startswith("kind:")))

# Families of flattened attributes, `<prefix><index>.<path>`, and the metadata member they become when they fill
# neither input nor output.
FAMILIES: Final[dict[str, str]] = {
    "gen_ai.prompt.": "gen_ai.prompt",
    "gen_ai.completion.": "gen_ai.completion",
    "llm.prompts.": "llm.prompts",
    "llm.completions.": "llm.completions",
    "llm.input_messages.": "llm.input_messages",
    "llm.output_messages.": "llm.output_messages",
    "llm.tools.": "llm.tools",
    "llm.request.functions.": "llm.request.functions",
    "retrieval.documents.": "retrieval.documents",
    "reranker.input_documents.": "reranker.input_documents",
    "reranker.output_documents.": "reranker.output_documents",
    "embedding.embeddings.": "embedding.embeddings",
}
FAMILY_PREFIXES: Final = tuple(FAMILIES)
# Attributes outside the tables that need more than being kept: flattened lists and MLflow's JSON-encoded values.
SPECIAL_PREFIXES: Final = (*FAMILY_PREFIXES, "mlflow.")
# A path segment right after an index that only repeats what the list holds.
WRAPPERS: Final = frozenset(
    {"message", "tool_call", "message_content", "document", "embedding", "tool", "prompt", "completion"}
)

# Older GenAI conventions put each message into a span event of its own.
MESSAGE_EVENTS: Final = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
CHOICE_EVENT: Final = "gen_ai.choice"
CONTENT_EVENTS: Final = frozenset({"gen_ai.content.prompt", "gen_ai.content.completion"})
DETAILS_EVENT: Final = "gen_ai.client.inference.operation.details"

# Resource attributes that describe the machine and the SDK, not the agent.
RESOURCE_NOISE: Final = ("telemetry.", "process.", "os.", "host.", "container.", "service.instance.id", "faas.")

# Scopes that name the tracing library, not a framework (source 1:6356-6359).
ANONYMOUS_SCOPES: Final = ("mlflow",)
