"""What is answered when no view answers: JSON under /api, a page elsewhere (source 1:2189-2193)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views import defaults
from django.views.decorators.csrf import csrf_exempt


def _is_api(request: HttpRequest) -> bool:
    return request.path == "/api" or request.path.startswith("/api/")


def _json(status: HTTPStatus, text: str) -> JsonResponse:
    return JsonResponse({"error": text}, status=status)


@csrf_exempt
def api_not_found(request: HttpRequest, *args: Any, **kwargs: Any) -> JsonResponse:
    """An unknown path under /api, whatever the method."""
    return _json(HTTPStatus.NOT_FOUND, "Not found")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler400."""
    return (
        _json(HTTPStatus.BAD_REQUEST, "Bad request") if _is_api(request) else defaults.bad_request(request, exception)
    )


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler403."""
    if _is_api(request):
        return _json(HTTPStatus.FORBIDDEN, "Forbidden")
    return defaults.permission_denied(request, exception)
