"""Shapes of requests and answers, for the OpenAPI schema; services read bodies and `wire` builds the objects."""

from __future__ import annotations

from rest_framework import serializers


class RunCreateSerializer(serializers.Serializer):
    """Body of `POST /runs`. Any further keys are ignored."""

    datasetId = serializers.CharField()
    evaluationSubject = serializers.DictField(required=False, help_text="Free-form; `version` labels the run.")
    runSource = serializers.CharField(required=False)
    sdk = serializers.DictField(required=False)
    evaluationSettingsId = serializers.CharField(required=False, help_text="A judge scorer or grading config.")
    additionalScorerIds = serializers.ListField(
        child=serializers.CharField(), required=False, max_length=4, help_text="Extra judge scorers."
    )
    scorerGroupId = serializers.CharField(required=False, help_text="Wins over the two scorer fields.")
    split = serializers.CharField(required=False)


class VariantGroupSerializer(serializers.Serializer):
    """Paraphrases of one question."""

    questionIndex = serializers.IntegerField()
    variants = serializers.ListField(child=serializers.CharField())


class RunCreatedSerializer(serializers.Serializer):
    """Reply of `POST /runs`."""

    runId = serializers.CharField()
    datasetId = serializers.CharField()
    status = serializers.CharField()
    smokeTestVariants = VariantGroupSerializer(many=True, allow_null=True)


class LiveStatisticsSerializer(serializers.Serializer):
    """Ratings so far, on the 0-10 scale; failed results count as 0, skipped ones not at all."""

    averageRating = serializers.FloatField(allow_null=True)
    minRating = serializers.FloatField(allow_null=True)
    maxRating = serializers.FloatField(allow_null=True)
    ratedCount = serializers.IntegerField()
    skippedCount = serializers.IntegerField()
    failedCount = serializers.IntegerField()


class SubmittedResultSerializer(serializers.Serializer):
    """One result. It needs an `idempotencyKey`, and an answer or an error."""

    idempotencyKey = serializers.CharField(max_length=500)
    caseId = serializers.CharField(required=False)
    questionIndex = serializers.IntegerField(required=False, help_text="0-based.")
    runNumber = serializers.IntegerField(required=False)
    input = serializers.DictField(required=False, help_text="{ query }")
    output = serializers.DictField(required=False, help_text="{ text }")
    error = serializers.DictField(required=False, help_text="{ type, message, retryable }")
    timings = serializers.DictField(required=False, help_text="{ latencyMs, inputTokens, outputTokens }")
    metadata = serializers.DictField(required=False)
    observableTrace = serializers.DictField(required=False)
    traceId = serializers.CharField(required=False)
    retrievalContext = serializers.JSONField(required=False, help_text="A text or a list of texts.")
    isSmokeTestVariant = serializers.BooleanField(required=False)
    smokeTestVariantText = serializers.CharField(required=False)


class ResultBatchSerializer(serializers.Serializer):
    """Body of `POST /runs/:id/results`."""

    batchId = serializers.CharField()
    results = SubmittedResultSerializer(many=True, help_text="1 to 10 results.")


class ScoredResultSerializer(serializers.Serializer):
    """The verdict on one result."""

    idempotencyKey = serializers.CharField()
    rating = serializers.FloatField(allow_null=True)
    justification = serializers.CharField(allow_null=True)
    status = serializers.CharField(help_text="scored, skipped, failed")
    vectorSimilarity = serializers.FloatField(allow_null=True)
    jaccardSimilarity = serializers.FloatField(allow_null=True)
    bleuScore = serializers.FloatField(allow_null=True)
    rougeScore = serializers.FloatField(allow_null=True)
    codeScorerResults = serializers.ListField(child=serializers.DictField(), allow_null=True)
    judgeScorerResults = serializers.ListField(
        child=serializers.DictField(), allow_null=True, required=False, help_text="Only with several judges."
    )
    deduped = serializers.BooleanField(required=False, help_text="True when the key had been accepted before.")


class ResultBatchReplySerializer(serializers.Serializer):
    """Reply of `POST /runs/:id/results`."""

    runId = serializers.CharField()
    batchId = serializers.CharField()
    accepted = serializers.IntegerField()
    duplicates = serializers.IntegerField()
    failedValidation = serializers.IntegerField()
    status = serializers.CharField()
    scoredResults = ScoredResultSerializer(many=True)
    liveStatistics = LiveStatisticsSerializer()


class MissingResultsSerializer(serializers.Serializer):
    """Reply of `GET /runs/:id/missing-results`; `missing` is always empty, the client knows its cases."""

    runId = serializers.CharField()
    submittedKeys = serializers.ListField(child=serializers.CharField())
    submittedCount = serializers.IntegerField()
    missing = serializers.ListField(child=serializers.CharField())


class FinalizedSerializer(serializers.Serializer):
    """Reply of `POST /runs/:id/finalize`."""

    runId = serializers.CharField()
    status = serializers.CharField(help_text="completed, failed")
    liveStatistics = LiveStatisticsSerializer()


class CaseStatisticsSerializer(serializers.Serializer):
    """Spread of a case's repetitions; the variance is that of the population, to 2 decimals."""

    questionIndex = serializers.IntegerField()
    ratedCount = serializers.IntegerField()
    averageRating = serializers.FloatField()
    minRating = serializers.FloatField()
    maxRating = serializers.FloatField()
    ratingVariance = serializers.FloatField()


class BreakdownEntrySerializer(serializers.Serializer):
    """One judge's average over a run."""

    scorerId = serializers.CharField()
    name = serializers.CharField()
    primary = serializers.BooleanField()
    averageRating = serializers.FloatField(allow_null=True)
    scored = serializers.IntegerField()


class ResultRowSerializer(serializers.Serializer):
    """One result of a run as read back."""

    questionIndex = serializers.IntegerField(allow_null=True)
    questionText = serializers.CharField(allow_null=True)
    runNumber = serializers.IntegerField(allow_null=True)
    input = serializers.DictField(allow_null=True)
    output = serializers.DictField(allow_null=True)
    rating = serializers.FloatField(allow_null=True)
    justification = serializers.CharField(allow_null=True)
    traceId = serializers.CharField(allow_null=True)
    latencyMs = serializers.FloatField(allow_null=True)
    inputTokens = serializers.IntegerField(allow_null=True)
    outputTokens = serializers.IntegerField(allow_null=True)
    vectorSimilarity = serializers.FloatField(allow_null=True)
    jaccardSimilarity = serializers.FloatField(allow_null=True)
    bleuScore = serializers.FloatField(allow_null=True)
    rougeScore = serializers.FloatField(allow_null=True)
    codeScorerResults = serializers.ListField(child=serializers.DictField(), allow_null=True)
    judgeScorerResults = serializers.ListField(child=serializers.DictField(), allow_null=True)
    isSmokeTestVariant = serializers.BooleanField()
    smokeTestVariantText = serializers.CharField(allow_null=True)
    status = serializers.CharField(help_text="scored, skipped, failed")
    error = serializers.DictField(allow_null=True)
    metadata = serializers.DictField(required=False)
    observableTrace = serializers.DictField(required=False)


class RunSerializer(serializers.Serializer):
    """A run with its statistics and results."""

    _id = serializers.CharField()
    runId = serializers.CharField()
    datasetId = serializers.CharField()
    evaluationSettingsId = serializers.CharField(allow_null=True)
    scorerGroupId = serializers.CharField(allow_null=True)
    additionalScorerIds = serializers.ListField(child=serializers.CharField(), allow_null=True)
    scorerBreakdown = BreakdownEntrySerializer(many=True, allow_null=True)
    evaluationSubject = serializers.DictField(allow_null=True)
    status = serializers.CharField(help_text="in_progress, completed, failed")
    resultCount = serializers.IntegerField()
    averageRating = serializers.FloatField(allow_null=True)
    liveStatistics = LiveStatisticsSerializer()
    caseStatistics = CaseStatisticsSerializer(many=True)
    results = ResultRowSerializer(many=True)


class RunListSerializer(serializers.Serializer):
    """The newest runs."""

    runs = RunSerializer(many=True)


class GatedScorerSerializer(serializers.Serializer):
    """The extra judge that was gated."""

    id = serializers.CharField()
    name = serializers.CharField()


class GateCheckSerializer(serializers.Serializer):
    """One check of a gate; `detail` is a sentence for the CI log."""

    check = serializers.ChoiceField(["fail-under", "no-regression"])
    passed = serializers.BooleanField()
    threshold = serializers.FloatField(allow_null=True)
    actual = serializers.FloatField(allow_null=True)
    detail = serializers.CharField()


class IntervalSerializer(serializers.Serializer):
    """A mean over cases and its 95 % interval; null bounds with fewer than two cases."""

    mean = serializers.FloatField()
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    cases = serializers.IntegerField()
    level = serializers.FloatField()


class DifferenceSerializer(IntervalSerializer):
    """This run minus the one before over shared cases; p-value of the paired sign-flip permutation test."""

    changedCases = serializers.IntegerField()
    pValue = serializers.FloatField()
    method = serializers.ChoiceField(["exact", "monte-carlo", "normal"])
    significant = serializers.BooleanField()


class ConfidenceSerializer(serializers.Serializer):
    """How sure the averages are; it never changes a verdict."""

    average = IntervalSerializer(allow_null=True)
    baseline = IntervalSerializer(allow_null=True)
    difference = DifferenceSerializer(allow_null=True)
    summary = serializers.CharField(allow_null=True)
    ratedCount = serializers.IntegerField()
    skippedCount = serializers.IntegerField()
    failedCount = serializers.IntegerField()


class GateSerializer(serializers.Serializer):
    """A gate's verdict; exit on `passed`."""

    runId = serializers.CharField()
    datasetId = serializers.CharField()
    averageRating = serializers.FloatField(allow_null=True)
    resultCount = serializers.IntegerField()
    baselineRunId = serializers.CharField(allow_null=True)
    baselineAverage = serializers.FloatField(allow_null=True)
    gatedScorer = GatedScorerSerializer(allow_null=True)
    checks = GateCheckSerializer(many=True)
    passed = serializers.BooleanField()
    confidence = ConfidenceSerializer()


class GateRecordSerializer(serializers.Serializer):
    """A recorded verdict."""

    _id = serializers.CharField()
    runId = serializers.CharField()
    datasetId = serializers.CharField()
    datasetName = serializers.CharField()
    passed = serializers.BooleanField()
    averageRating = serializers.FloatField(allow_null=True)
    baselineRunId = serializers.CharField(allow_null=True)
    baselineAverage = serializers.FloatField(allow_null=True)
    gatedScorer = GatedScorerSerializer(allow_null=True)
    caller = serializers.CharField(allow_null=True)
    checks = GateCheckSerializer(many=True)
    createdAt = serializers.DateTimeField()


class GateListSerializer(serializers.Serializer):
    """The gate history, newest first."""

    gates = GateRecordSerializer(many=True)
