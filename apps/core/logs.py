"""Structured log lines. Secrets are masked here, at the one place every line passes."""

from __future__ import annotations

import contextvars
import json
import logging
import re
from datetime import UTC, datetime

_STANDARD = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {
    "message",
    "asctime",
    "taskName",
    # What libraries attach for their own handlers: colours, whole request objects, sockets.
    "color_message",
    "request",
    "server_time",
    "data",
}
# The id of the request at work in this context; set by the router, shown by every line logged on its behalf.
request_id: contextvars.ContextVar[str | None] = contextvars.ContextVar("request_id", default=None)

_SECRET = re.compile(r"(agtx_[a-z]+_)[0-9a-f]{8,}|(\bsk-|\bAIza)[A-Za-z0-9_-]{8,}|(://[^/\s:@]+:)[^@\s]+(?=@)")


def mask_secrets(text: str) -> str:
    """Replace project keys, provider keys and passwords in URLs by `***`."""
    return _SECRET.sub(lambda m: (m.group(1) or m.group(2) or m.group(3)) + "***", text)


class JSONFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, the `extra` fields, and the traceback if any."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        identity = request_id.get()
        if identity is not None:
            line["request_id"] = identity
        line.update({key: value for key, value in record.__dict__.items() if key not in _STANDARD})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return mask_secrets(json.dumps(line, default=str, ensure_ascii=False))


class ClientFaults(logging.Filter):
    """What a client alone is to blame for is a warning in one line, not an error with a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Lets every record pass, milder."""
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        record.exc_info = None
        return True
