"""The platform model: the one instance-wide model of the server's own LLM work (source 1:8356-8362).

It is not the judges' default, which is the catalog's `isDefault` row.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction

from apps.core.models import InstanceSetting
from apps.projects.models import Project
from apps.projects.services import audit

DEFAULT = "gpt-5.6-luna"
_KEY = "platform_model"


def platform_model() -> str:
    """The model id in force."""
    value = InstanceSetting.objects.filter(key=_KEY).values_list("value", flat=True).first()
    return value if isinstance(value, str) and value else DEFAULT


@transaction.atomic
def set_platform_model(*, model_id: str, project: Project | None = None, request: Any = None) -> str:
    """Change it for the whole instance; any id a provider, a custom endpoint or OpenRouter may know is accepted."""
    InstanceSetting.objects.update_or_create(key=_KEY, defaults={"value": model_id})
    audit.record(
        action="settings.update",
        project=project,
        request=request,
        summary_fields=["platformModel"],
        target_type="platform-model",
    )
    return model_id
