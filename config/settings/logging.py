"""One JSON object a line on stdout."""

from config import env

_level = (env.text("AGENTX_LOG_LEVEL") or "info").upper()
_level = {"WARN": "WARNING", "TRACE": "DEBUG", "FATAL": "CRITICAL", "SILENT": "CRITICAL"}.get(_level, _level)

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"client_faults": {"()": "apps.core.logs.ClientFaults"}},
    "formatters": {"json": {"()": "apps.core.logs.JSONFormatter"}},
    "handlers": {"stdout": {"class": "logging.StreamHandler", "stream": "ext://sys.stdout", "formatter": "json"}},
    "root": {"handlers": ["stdout"], "level": _level},
    "loggers": {
        "django": {"level": "WARNING" if _level == "INFO" else _level},
        "uvicorn.access": {"level": "WARNING"},
        "django.security.DisallowedHost": {"filters": ["client_faults"]},
        # A line for every call to a provider; the calls are recorded with their outcome anyway.
        "httpx": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        # At debug these print every CREATE TABLE and every generated function.
        "django.db.backends.schema": {"level": "WARNING"},
        "celery.utils.functional": {"level": "WARNING"},
        "celery.bootsteps": {"level": "WARNING"},
    },
}
