"""Projects on the wire."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.core.times import datetime_to_iso
from apps.projects.models import Project
from apps.projects.services.keys import primary_key_of


def wire_project(project: Project, key: str | None = None) -> dict[str, Any]:
    """`{ _id, name, apiKey, isDefault, createdAt }`; `apiKey` is null when the stored key cannot be shown."""
    return {
        "_id": project.uid,
        "name": project.name,
        "apiKey": key or primary_key_of(project),
        "isDefault": project.is_default,
        "createdAt": datetime_to_iso(project.created_at),
    }


class ProjectSerializer(serializers.Serializer[Any]):
    """Shape of a project, for the API schema."""

    _id = serializers.CharField()
    name = serializers.CharField()
    apiKey = serializers.CharField(allow_null=True)
    isDefault = serializers.BooleanField()
    createdAt = serializers.DateTimeField()


class ProjectBody(serializers.Serializer[Any]):
    """Body of POST /projects."""

    name = serializers.CharField(max_length=200)


class OneProject(serializers.Serializer[Any]):
    """Answer of POST /projects."""

    project = ProjectSerializer()


class ProjectList(serializers.Serializer[Any]):
    """Answer of GET /projects."""

    projects = ProjectSerializer(many=True)


class MonitoringDefaultsSerializer(serializers.Serializer[Any]):
    """A project's monitoring settings; `sampleRate`, `coverageMode` and `latencyThresholdMs` gate nothing."""

    enabledBuiltinPatterns = serializers.ListField(child=serializers.CharField(), required=False)
    topicsEnabled = serializers.BooleanField(required=False)
    topicsSampleRate = serializers.FloatField(required=False, min_value=0, max_value=1)
    retentionDays = serializers.IntegerField(required=False, help_text="0 or less keeps everything.")
    coverageMode = serializers.CharField(required=False)
    sampleRate = serializers.FloatField(required=False, min_value=0, max_value=1)
    latencyThresholdMs = serializers.FloatField(required=False, allow_null=True)


class MonitoringDefaultsAnswer(serializers.Serializer[Any]):
    """Answer of PUT …/settings/monitoring-defaults."""

    monitoringDefaults = MonitoringDefaultsSerializer()


class ApiKeyAnswer(serializers.Serializer[Any]):
    """Answer of POST …/settings/api-key/regenerate."""

    apiKey = serializers.CharField()
