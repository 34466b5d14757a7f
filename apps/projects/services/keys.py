"""Project keys: making, finding and replacing them. The look-up is on the hot path and cached per process."""

from __future__ import annotations

import hashlib
import secrets
import time

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.core.encryption import decrypt, encrypt
from apps.projects.models import ApiKey, Project

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


def primary_key_of(project: Project) -> str:
    """The project's own key in clear, for Settings and GET /projects."""
    row = project.api_keys.filter(is_primary=True, revoked_at=None).latest("created_at")
    return decrypt(row.key_encrypted)


@transaction.atomic
def regenerate_key(*, project: Project) -> str:
    """Replace the project's primary key; the old one is dead at once (source 1:8324)."""
    project.api_keys.filter(is_primary=True, revoked_at=None).update(revoked_at=timezone.now(), is_primary=False)
    key = create_key(project=project)
    forget_cached_keys_now_and_on_commit()
    return key
