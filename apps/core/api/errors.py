"""The one error shape of the API: `{ "error": "<text>" }` (source 1:2189-2193)."""

from __future__ import annotations

import logging
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import DataError, InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions, status
from rest_framework.response import Response

logger = logging.getLogger(__name__)

DATABASE_UNAVAILABLE = "The database is unavailable, try again"


class APIError(exceptions.APIException):
    """Raise with the text a client shall read and the HTTP status."""

    def __init__(self, message: str, status_code: int = 400, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.message = message
        self.headers = headers or {}


class NotFound(APIError):
    """404 with the text of the kind of thing that is missing, e.g. `Trace not found`."""

    def __init__(self, message: str = "Not found") -> None:
        super().__init__(message, 404)


class InvalidKey(APIError):
    """401 for a missing, unknown or malformed project key (source 1:2231-2234)."""

    def __init__(self) -> None:
        super().__init__("Invalid or missing API key", 401)


def _first_text(detail: Any, field: str | None = None) -> str:
    if isinstance(detail, dict):
        for key, value in detail.items():
            return _first_text(value, None if key == "non_field_errors" else str(key))
    if isinstance(detail, list):
        return _first_text(detail[0], field) if detail else "Invalid request"
    return f"{field}: {detail}" if field else str(detail)


def _view_of(context: dict[str, Any]) -> str:
    return type(context.get("view")).__name__


def exception_handler(error: Exception, context: dict[str, Any]) -> Response:
    """Turn every exception of an API view into `{ "error": text }` with its status, logging what is our fault."""
    # Imported late: rest_framework.views imports the settings, which name classes that import this module.
    from rest_framework.views import set_rollback

    set_rollback()
    if isinstance(error, APIError):
        return Response({"error": error.message}, status=error.status_code, headers=error.headers)
    if isinstance(error, Http404):
        return Response({"error": "Not found"}, status=status.HTTP_404_NOT_FOUND)
    if isinstance(error, PermissionDenied):
        return Response({"error": "Forbidden"}, status=status.HTTP_403_FORBIDDEN)
    if isinstance(error, exceptions.APIException):
        headers: dict[str, str] = {}
        if isinstance(error, exceptions.ValidationError):
            return Response({"error": _first_text(error.detail)}, status=400)
        if isinstance(error, exceptions.NotAuthenticated | exceptions.AuthenticationFailed):
            return Response({"error": "Invalid or missing API key"}, status=401)
        return Response({"error": _first_text(error.detail)}, status=error.status_code, headers=headers)
    if isinstance(error, DataError):
        # Text that the database cannot hold, such as a NUL character; Postgres alone refuses it, also in a WHERE.
        logger.warning("a request named a value that the database cannot hold", extra={"view": _view_of(context)})
        request = context.get("request")
        if request is not None and "\x00" in request.path:
            return Response({"error": "Not found"}, status=status.HTTP_404_NOT_FOUND)
        return Response({"error": "The request holds a value that cannot be stored"}, status=400)
    if isinstance(error, OperationalError | InterfaceError):
        # Away, restarting, locked for too long, or its disk is full: the client may ask again.
        logger.error("the database is unavailable: %s", error)
        return Response({"error": DATABASE_UNAVAILABLE}, status=503, headers={"Retry-After": "2"})
    logger.error("unhandled error in %s", _view_of(context), exc_info=error)
    return Response({"error": "Internal server error"}, status=500)
