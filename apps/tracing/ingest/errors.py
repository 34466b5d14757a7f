"""How ingest refuses: exceptions of the pipeline and the exact texts of the wire (source 1:1784-1855)."""

from __future__ import annotations

QUEUE_FULL = "Ingest queue is full - retry with backoff (Retry-After: 1s)."
QUEUE_FULL_RETRY_AFTER = "1"
STORAGE_UNAVAILABLE = "Trace storage is unavailable - the span was not stored; retry."
STORAGE_UNAVAILABLE_RETRY_AFTER = "2"
# The project was deleted while the span waited; the key that brought it opens nothing any more.
PROJECT_GONE = "Invalid or missing API key"
INVALID_PAYLOAD = "Invalid trace payload"
QUOTA_REACHED = (
    "Daily trace quota reached (AGENTX_QUOTA_TRACES_PER_DAY={limit}; child spans are exempt; resets at midnight UTC)."
)


class QueueFull(Exception):
    """The queue has no room for these spans; none of them was taken."""

    def __init__(self) -> None:
        super().__init__(QUEUE_FULL)


class StorageUnavailable(Exception):
    """The spans could not be stored, also not at the second try; none of them was."""

    def __init__(self) -> None:
        super().__init__(STORAGE_UNAVAILABLE)


class NotJSON(Exception):
    """The body is not JSON, or nested deeper than anything a client sends; answered with 400."""


class InvalidPayload(Exception):
    """The body does not fit the schema: 422 with every field error, keyed by the spelling that was sent."""

    def __init__(self, field_errors: dict[str, list[str]], form_errors: list[str] | None = None) -> None:
        super().__init__(INVALID_PAYLOAD)
        self.field_errors = field_errors
        self.form_errors = form_errors or []

    def body(self) -> dict[str, object]:
        """The answer's JSON body."""
        return {
            "error": INVALID_PAYLOAD,
            "details": {"fieldErrors": self.field_errors, "formErrors": self.form_errors},
        }
