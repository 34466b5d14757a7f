"""The shapes of the read routes for the OpenAPI document. Answers are built by `wire`; these describe them."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

ANY = {"description": "Any JSON value, as it was sent"}
KINDS = (
    "agent",
    "llm",
    "tool",
    "retrieval",
    "chain",
    "embedding",
    "reranker",
    "guardrail",
    "evaluator",
    "prompt",
    "memory",
)


@extend_schema_field(ANY)
class AnyJSON(serializers.JSONField):
    """A payload kept as it came."""


class ErrorSerializer(serializers.Serializer):
    """Every refusal."""

    error = serializers.CharField()


class TraceSerializer(serializers.Serializer):
    """A row of the trace list; members that are not required are left out when absent."""

    _id = serializers.CharField()
    name = serializers.CharField()
    input = AnyJSON(required=False)
    output = AnyJSON(required=False)
    latencyMs = serializers.FloatField(required=False)
    error = serializers.CharField(required=False)
    framework = serializers.CharField(required=False)
    model = serializers.CharField(required=False)
    toolCalls = serializers.ListField(child=serializers.DictField(), required=False)
    sessionId = serializers.CharField(required=False)
    spanId = serializers.CharField(required=False)
    spanKind = serializers.ChoiceField(choices=KINDS)
    judgeScores = serializers.DictField(allow_null=True)
    parentSpanId = serializers.CharField(required=False)
    startedAt = serializers.DateTimeField(required=False)
    trafficSource = serializers.ChoiceField(choices=["eval-run"], required=False)
    # The wire's name hides an attribute of the base class that only field declarations use.
    source = serializers.ChoiceField(choices=["sdk"])  # type: ignore[assignment]
    createdAt = serializers.DateTimeField()
    inputTokens = serializers.IntegerField(allow_null=True)
    outputTokens = serializers.IntegerField(allow_null=True)


class SpanSerializer(TraceSerializer):
    """A span in full."""

    metadata = serializers.DictField(required=False)
    performanceSummary = serializers.DictField(required=False)
    cacheReadTokens = serializers.IntegerField(required=False)
    cacheWriteTokens = serializers.IntegerField(required=False)
    estimatedCostUSD = serializers.FloatField(allow_null=True)


class TraceListSerializer(serializers.Serializer):
    """A page of traces."""

    totalCount = serializers.IntegerField()
    traces = TraceSerializer(many=True)
    hasNextPage = serializers.BooleanField()
    nextCursor = serializers.CharField(allow_null=True)


class SpansSerializer(serializers.Serializer):
    """Every span of a session."""

    spans = SpanSerializer(many=True)


class JudgeSerializer(serializers.Serializer):
    """One judge's latest verdict on a session."""

    name = serializers.CharField()
    rating = serializers.FloatField()


class SessionSerializer(serializers.Serializer):
    """A row of the session list."""

    sessionId = serializers.CharField()
    agentId = serializers.CharField(allow_null=True)
    agentName = serializers.CharField(allow_null=True)
    turnCount = serializers.IntegerField()
    spanCount = serializers.IntegerField()
    errorCount = serializers.IntegerField()
    totalLatencyMs = serializers.FloatField()
    firstAt = serializers.DateTimeField()
    lastAt = serializers.DateTimeField()
    judgeRating = serializers.FloatField(allow_null=True)
    judgeName = serializers.CharField(allow_null=True)
    judgeCheckedAt = serializers.DateTimeField(allow_null=True)
    judges = JudgeSerializer(many=True)


class SessionListSerializer(serializers.Serializer):
    """A page of sessions."""

    window = serializers.CharField()
    sessions = SessionSerializer(many=True)
    hasNextPage = serializers.BooleanField()
    nextCursor = serializers.CharField(allow_null=True)


class ProfileSerializer(serializers.Serializer):
    """An agent's monitoring profile."""

    _id = serializers.CharField()
    workspaceId = serializers.CharField(allow_null=True)
    agentId = serializers.CharField()
    enabled = serializers.BooleanField()
    failureDetectionEnabled = serializers.BooleanField()
    infoDetectionEnabled = serializers.BooleanField()
    topicsEnabled = serializers.BooleanField()
    coverageMode = serializers.CharField()
    sampleRate = serializers.FloatField()
    channels = serializers.ListField(child=serializers.CharField())
    datasetId = serializers.CharField(allow_null=True)
    thresholdOverrides = serializers.DictField()
    retentionDays = serializers.IntegerField()
    approvalPolicy = serializers.DictField(allow_null=True)
    createdAt = serializers.DateTimeField()
    updatedAt = serializers.DateTimeField()


class AgentSerializer(serializers.Serializer):
    """An agent by itself."""

    _id = serializers.CharField()
    name = serializers.CharField()
    createdAt = serializers.DateTimeField()


class ListedAgentSerializer(AgentSerializer):
    """An agent in the list."""

    kind = serializers.ChoiceField(choices=["agent"])
    agentType = serializers.ChoiceField(choices=["external"])
    monitoringAgentId = serializers.CharField()
    monitoringProfile = ProfileSerializer(allow_null=True)


class AgentListSerializer(serializers.Serializer):
    """The agent registry."""

    agents = ListedAgentSerializer(many=True)


class OneAgentSerializer(serializers.Serializer):
    """One agent, wrapped."""

    agent = AgentSerializer()


class NewAgentSerializer(serializers.Serializer):
    """What POST /agents takes."""

    name = serializers.CharField()
