"""The audit trail: one row for each control-plane action, inserted here and nowhere else (source 1:8320-8337).

A row says who did what to which thing and which fields were named, never a value. Data-plane traffic (ingest,
feedback, outcomes) adds none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from apps.core.logs import mask_secrets
from apps.core.ratelimit import client_ip
from apps.projects.models import AuditEvent, Project

_FIELD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\[\]-]{0,59}")
_MAX_FIELDS = 30


def record(
    *,
    action: str,
    project: Project | None = None,
    request: Any = None,
    summary_fields: Iterable[str] = (),
    target_type: str = "",
    target_id: str = "",
    status: str = "ok",
    actor_type: str | None = None,
) -> AuditEvent:
    """Add a row. Call it inside the transaction of the action, so that there is never one without the other.

    `action` is `<noun>.<verb>`; `request` (a Django or REST request) tells the actor and address, None means the
    server itself; `summary_fields` are names of fields of a request; what does not look like a name is left out.
    """
    kind, actor_id, email = _actor_of(request)
    names = [name for name in summary_fields if _FIELD_NAME.fullmatch(name) and mask_secrets(name) == name]
    return AuditEvent.objects.create(
        action=action,
        actor_type=actor_type or kind,
        actor_id=actor_id[:40],
        actor_email=email[:254],
        project_uid=project.uid if project else "",
        organization_uid=project.organization_id if project else "",
        ip=_ip_of(request),
        target_type=target_type[:40],
        target_id=mask_secrets(target_id)[:200],
        summary=", ".join(names[:_MAX_FIELDS])[:500],
        status=status[:20],
    )


def _actor_of(request: Any) -> tuple[str, str, str]:
    """Type, id and e-mail of who asks. The id of a key is that of its row, never the key."""
    if request is None:
        return "system", "", ""
    auth = getattr(request, "auth", None)
    if isinstance(auth, Project):
        return "apiKey", auth.key_id or "", ""
    user = getattr(request, "user", None)
    if user is not None and user.is_authenticated:
        return "user", str(user.pk), user.get_username()
    # A page in disabled mode: whoever reaches the port is trusted and has no name.
    return "user", "", ""


def _ip_of(request: Any) -> str:
    if request is None:
        return ""
    return client_ip(request.META.get("REMOTE_ADDR", ""), request.META.get("HTTP_X_FORWARDED_FOR"))[:45]
