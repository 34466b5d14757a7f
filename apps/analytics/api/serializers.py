"""Shapes of the answers, for the OpenAPI schema; the selectors build the objects themselves."""

from __future__ import annotations

from rest_framework import serializers


class RatesSerializer(serializers.Serializer):
    """Fractions, null without data."""

    healthRate = serializers.FloatField(allow_null=True)
    failureRate = serializers.FloatField(allow_null=True)
    downvoteRate = serializers.FloatField(allow_null=True)
    toolFailureRate = serializers.FloatField(allow_null=True)


class BreakdownSerializer(serializers.Serializer):
    """How the runs of the window were classified."""

    totalRuns = serializers.IntegerField()
    healthyRuns = serializers.IntegerField()
    failingRuns = serializers.IntegerField()
    operationalFailingRuns = serializers.IntegerField()
    scorerFailingRuns = serializers.IntegerField()
    healthRate = serializers.FloatField(allow_null=True)


class KpisSerializer(RatesSerializer):
    """The KPI strip; p95LatencyMs in milliseconds."""

    window = serializers.CharField()
    totalRuns = serializers.IntegerField()
    p95LatencyMs = serializers.FloatField(allow_null=True)
    deltas = RatesSerializer()
    breakdown = BreakdownSerializer()


class PercentilesSerializer(serializers.Serializer):
    """Latencies of root traces in milliseconds."""

    p50 = serializers.FloatField(allow_null=True)
    p95 = serializers.FloatField(allow_null=True)
    p99 = serializers.FloatField(allow_null=True)


class GridNumbersSerializer(serializers.Serializer):
    """What a bucket and the totals have in common."""

    spansByKind = serializers.DictField(child=serializers.IntegerField())
    latency = PercentilesSerializer()
    inputTokens = serializers.IntegerField()
    outputTokens = serializers.IntegerField()
    costUsd = serializers.FloatField()
    toolCalls = serializers.IntegerField()
    toolFailures = serializers.IntegerField()


class GridBucketSerializer(GridNumbersSerializer):
    """One point of the grid's charts."""

    ts = serializers.DateTimeField()
    label = serializers.CharField()  # type: ignore[assignment]
    byFramework = serializers.DictField(child=serializers.IntegerField())


class GridTotalsSerializer(GridNumbersSerializer):
    """The whole window."""

    traces = serializers.IntegerField()
    spans = serializers.IntegerField()


class FacetsSerializer(serializers.Serializer):
    """Values the filters can take."""

    agents = serializers.ListField(child=serializers.CharField())
    models = serializers.ListField(child=serializers.CharField())
    tools = serializers.ListField(child=serializers.CharField())
    frameworks = serializers.ListField(child=serializers.CharField())


class MetricsSerializer(serializers.Serializer):
    """The metrics grid."""

    window = serializers.CharField()
    bucketMs = serializers.IntegerField()
    buckets = GridBucketSerializer(many=True)
    totals = GridTotalsSerializer()
    frameworks = serializers.DictField(child=serializers.IntegerField())
    facets = FacetsSerializer()


class CostPointSerializer(serializers.Serializer):
    """Spend in one point, in USD."""

    label = serializers.CharField()  # type: ignore[assignment]
    ts = serializers.DateTimeField()
    byModel = serializers.DictField(child=serializers.FloatField())


class CostTrendSerializer(serializers.Serializer):
    """Spend over time; `models` by spend, highest first."""

    window = serializers.CharField()
    points = CostPointSerializer(many=True)
    models = serializers.ListField(child=serializers.CharField())
    totalsByModel = serializers.DictField(child=serializers.FloatField())
    totalCost = serializers.FloatField()
    totalsByTool = serializers.DictField(child=serializers.FloatField())


class ComparedModelSerializer(serializers.Serializer):
    """One model of the comparison."""

    model = serializers.CharField()
    traceCount = serializers.IntegerField()
    healthRate = serializers.FloatField(allow_null=True)
    failureRate = serializers.FloatField(allow_null=True)
    p95LatencyMs = serializers.FloatField(allow_null=True)
    totalCostUSD = serializers.FloatField(allow_null=True)


class ModelComparisonSerializer(serializers.Serializer):
    """Models by trace count."""

    window = serializers.CharField()
    models = ComparedModelSerializer(many=True)


class TrendPointSerializer(serializers.Serializer):
    """Runs in one point."""

    label = serializers.CharField()  # type: ignore[assignment]
    ts = serializers.DateTimeField()
    healthy = serializers.IntegerField()
    failing = serializers.IntegerField()
    healthRate = serializers.FloatField(allow_null=True)
    signals = serializers.IntegerField()


class TrendSerializer(serializers.Serializer):
    """Healthy and failing runs over time."""

    window = serializers.CharField()
    points = TrendPointSerializer(many=True)


class FailingAgentSerializer(serializers.Serializer):
    """An agent with failures."""

    agentId = serializers.CharField()
    name = serializers.CharField()
    count = serializers.IntegerField()


class FailingToolSerializer(serializers.Serializer):
    """A tool with failures."""

    tool = serializers.CharField()
    count = serializers.IntegerField()


class FailingPatternSerializer(serializers.Serializer):
    """A kind of failure."""

    patternKey = serializers.CharField()
    count = serializers.IntegerField()


class TopFailingSerializer(serializers.Serializer):
    """What failed most."""

    window = serializers.CharField()
    agents = FailingAgentSerializer(many=True)
    tools = FailingToolSerializer(many=True)
    patterns = FailingPatternSerializer(many=True)


class ScorerActivityItemSerializer(serializers.Serializer):
    """Signals of one scorer, in total and by day."""

    count = serializers.IntegerField()
    buckets = serializers.ListField(child=serializers.IntegerField())


class ScorerActivitySerializer(serializers.Serializer):
    """Signals by scorer."""

    window = serializers.CharField()
    activity = serializers.DictField(child=ScorerActivityItemSerializer())


class EvaluationSerializer(serializers.Serializer):
    """One verdict on a trace."""

    id = serializers.CharField()
    evaluatorId = serializers.CharField()
    evaluatorName = serializers.CharField()
    rating = serializers.FloatField()
    justification = serializers.CharField()
    createdAt = serializers.DateTimeField()


class EvaluationsSerializer(serializers.Serializer):
    """Verdicts on a trace, newest first."""

    evaluations = EvaluationSerializer(many=True)
