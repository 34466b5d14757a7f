"""Project keys: making, finding and replacing them. The look-up is on the hot path and cached per process."""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
from pathlib import Path
from typing import Any

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.core.encryption import decrypt, encrypt
from apps.projects.models import ApiKey, Project
from apps.projects.services import audit
from config.home import update_config

logger = logging.getLogger(__name__)

# A key revoked by another process stops working here within settings.CACHE_SECONDS; in this process at once.
_MAX_ENTRIES = 10_000
_cache: dict[str, tuple[float, Project | None]] = {}
_generation = 0


def new_key() -> str:
    """`agtx_local_` and 48 lowercase hex characters (source 1:2009-2010)."""
    return f"agtx_local_{secrets.token_hex(24)}"


def hash_key(key: str) -> str:
    """The SHA-256 by which a key is found; keys have 192 random bits, so no slow hash is needed."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def forget_cached_keys() -> None:
    """Drop this process's cache; called by everything that changes a key or a project."""
    global _generation
    _generation += 1
    _cache.clear()


def forget_cached_keys_now_and_on_commit() -> None:
    """Drop it inside a transaction too: what other threads read before the commit is dropped again after it."""
    forget_cached_keys()
    transaction.on_commit(forget_cached_keys)


def cached_project(key: str) -> tuple[bool, Project | None]:
    """Whether the cache knows the key, and what it opens; for callers that must not wait for the database."""
    cached = _cache.get(key)
    if cached is not None and cached[0] > time.monotonic():
        return True, cached[1]
    return False, None


def project_for_key(key: str) -> Project | None:
    """The live project a key opens, or None; its `key_id` names the key. Unknown keys are cached too, bounded."""
    now = time.monotonic()
    cached = _cache.get(key)
    if cached is not None and cached[0] > now:
        return cached[1]
    generation = _generation
    row = (
        ApiKey.objects.filter(key_hash=hash_key(key), revoked_at=None, project__deleting=False)
        .select_related("project__organization")
        .first()
    )
    project = row.project if row else None
    if project is not None and row is not None:
        project.key_id = row.id
    if generation == _generation:
        # Not when a key changed while we asked: that answer may already be wrong.
        if len(_cache) >= _MAX_ENTRIES:
            _cache.clear()
        _cache[key] = (now + settings.CACHE_SECONDS, project)
    return project


def create_key(*, project: Project, name: str = "Default", is_primary: bool = True, key: str | None = None) -> str:
    """Store a key for the project (a fresh one unless given) and return it in clear."""
    key = key or new_key()
    ApiKey.objects.create(
        project=project,
        name=name,
        is_primary=is_primary,
        key_hash=hash_key(key),
        key_encrypted=encrypt(key),
        masked=f"{key[:15]}…{key[-4:]}",
    )
    # It may have been asked for before it existed.
    forget_cached_keys_now_and_on_commit()
    return key


def primary_key_of(project: Project) -> str | None:
    """The project's own key in clear, for Settings and GET /projects.

    None when it was revoked, or when it cannot be decrypted because the instance secret is another one.
    """
    rows = [row for row in project.api_keys.all() if row.is_primary and row.revoked_at is None]
    return clear_key(max(rows, key=lambda row: row.id)) if rows else None


def clear_key(row: ApiKey) -> str | None:
    """A stored key in clear; None when the instance secret has changed since it was stored."""
    try:
        return decrypt(row.key_encrypted)
    except InvalidToken:
        logger.warning("a project key was encrypted with another instance secret", extra={"apiKeyId": row.id})
        return None


@transaction.atomic
def regenerate_key(*, project: Project, request: Any = None) -> str:
    """Replace the project's primary key; the old one is dead at once (source 1:8324).

    For the default project $AGENTX_HOME/config.json follows, so that the next start prints the new key.
    """
    # The row lock keeps two callers from making two primary keys.
    project = Project.objects.select_for_update().get(pk=project.pk)
    project.api_keys.filter(is_primary=True, revoked_at=None).update(revoked_at=timezone.now(), is_primary=False)
    key = create_key(project=project)
    audit.record(
        action="apikey.regenerate", project=project, request=request, target_type="project", target_id=project.uid
    )
    if project.is_default:
        transaction.on_commit(lambda: _keep_in_config(key))
    return key


@transaction.atomic
def revoke_key(*, key: ApiKey, request: Any = None) -> None:
    """Make a key dead at once; revoking a revoked key changes nothing."""
    revoked = ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now(), is_primary=False)
    if revoked:
        audit.record(
            action="apikey.revoke", project=key.project, request=request, target_type="apikey", target_id=key.pk
        )
    forget_cached_keys_now_and_on_commit()


@transaction.atomic
def restore_or_replace_key(*, project: Project, known: str | None) -> str:
    """A key in clear for a project that cannot show its own.

    A project whose keys were all revoked gets a new one. One whose key cannot be decrypted (the instance secret is
    another one) has it stored again when `known`, from config.json, is that key; else InvalidToken is raised, since
    a wrong secret is better mended than papered over with a second key.
    """
    primaries = project.api_keys.filter(is_primary=True, revoked_at=None)
    if not primaries.exists():
        return create_key(project=project)
    if known and primaries.filter(key_hash=hash_key(known)).update(key_encrypted=encrypt(known)):
        return known
    raise InvalidToken


def _keep_in_config(key: str) -> None:
    try:
        update_config(Path(settings.AGENTX_HOME), apiKey=key)
    except (OSError, ValueError):
        logger.exception("config.json could not be updated with the default project's new key")
