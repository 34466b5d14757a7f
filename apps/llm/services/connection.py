"""Trying out a custom OpenAI-compatible endpoint before it goes into the catalog (PROJ-041)."""

from __future__ import annotations

import logging
from typing import Any, TypedDict

import msgspec
from cryptography.fernet import InvalidToken

from apps.core import outbound
from apps.core.encryption import decrypt
from apps.llm.models import CatalogModel

logger = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 10.0
_MAX_BYTES = 2_000_000
_MAX_LISTED = 500


class ConnectionState(TypedDict, total=False):
    """`{ live, error?, availableModelIds? }`."""

    live: bool
    error: str
    availableModelIds: list[str]


def try_connection(*, base_url: str, model_id: str, api_key: str | None) -> ConnectionState:
    """Ask an endpoint for its models; one that has no such list gets a completion of one token instead.

    Never raises for what the other side does; its reply text is not passed on. Without `api_key`, the key that the
    catalog holds for this very model and address is used, so that an edit form need not ask for it again.
    """
    root = base_url.rstrip("/")
    key = api_key or _stored_key(root, model_id)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        answer = outbound.request(
            "GET", f"{root}/models", headers=headers, timeout=_TIMEOUT_SECONDS, max_bytes=_MAX_BYTES
        )
        if answer.status in {404, 405, 501}:
            return _try_completion(root, model_id, headers)
        if answer.status != 200:
            return {"live": False, "error": _reason(answer.status)}
        listed = _model_ids(answer.body)
    except outbound.OutboundError as error:
        return {"live": False, "error": str(error)}
    if listed is None:
        return {"live": False, "error": "The endpoint did not answer with a list of models"}
    if model_id not in listed:
        return {
            "live": False,
            "error": "The endpoint does not list this model",
            "availableModelIds": listed[:_MAX_LISTED],
        }
    return {"live": True, "availableModelIds": listed[:_MAX_LISTED]}


def _try_completion(root: str, model_id: str, headers: dict[str, str]) -> ConnectionState:
    body = msgspec.json.encode({"model": model_id, "max_tokens": 1, "messages": [{"role": "user", "content": "ping"}]})
    answer = outbound.request(
        "POST",
        f"{root}/chat/completions",
        headers={**headers, "Content-Type": "application/json"},
        body=body,
        timeout=_TIMEOUT_SECONDS,
        max_bytes=_MAX_BYTES,
    )
    if answer.status == 200:
        return {"live": True}
    return {"live": False, "error": _reason(answer.status)}


def _reason(status: int) -> str:
    if status in {401, 403}:
        return f"The endpoint refused the API key (HTTP {status})"
    if 300 <= status < 400:
        return f"The endpoint redirects (HTTP {status}); redirects are not followed"
    return f"The endpoint answered HTTP {status}"


def _model_ids(body: bytes) -> list[str] | None:
    """Ids of an OpenAI-style list `{ data: [{ id }] }` (or a bare list); None when it is none."""
    try:
        decoded: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    items = decoded.get("data", decoded.get("models")) if isinstance(decoded, dict) else decoded
    if not isinstance(items, list):
        return None
    ids = [item.get("id") if isinstance(item, dict) else item for item in items]
    return [text[:200] for text in ids if isinstance(text, str) and text]


def _stored_key(root: str, model_id: str) -> str | None:
    model = CatalogModel.objects.filter(organization=None, model_id=model_id).first()
    if model is None or not model.api_key_encrypted or model.base_url.rstrip("/") != root:
        return None
    try:
        return decrypt(model.api_key_encrypted)
    except InvalidToken:
        logger.warning("a model's key was encrypted with another instance secret; save it again")
        return None
