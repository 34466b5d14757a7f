"""The shapes of the dataset routes for the OpenAPI document. Answers are built by `wire`; these describe them."""

from __future__ import annotations

from rest_framework import serializers

from apps.tracing.api.serializers import AnyJSON


class DatasetBodySerializer(serializers.Serializer):
    """What create and edit take; null in an optional key means unset."""

    name = serializers.CharField(max_length=300)
    description = serializers.CharField(required=False, allow_null=True)
    numberOfRequests = serializers.IntegerField(required=False, allow_null=True, default=1)
    acceptanceCriteria = serializers.CharField(required=False, allow_null=True)
    rejectionCriteria = serializers.CharField(required=False, allow_null=True)
    evaluationCriteria = serializers.CharField(required=False, allow_null=True)
    questions = serializers.ListField(child=AnyJSON(), required=False, allow_null=True)
    vectorSimilarity = AnyJSON(required=False, help_text='`{ "enabled": true, "model"? }`')
    jaccardSimilarity = AnyJSON(required=False, help_text='`{ "enabled": true }`')
    bleuScore = AnyJSON(required=False, help_text='`{ "enabled": true }`')
    rougeScore = AnyJSON(required=False, help_text='`{ "enabled": true }`')
    codeScorers = AnyJSON(required=False, help_text="`[{ id?, name?, code, enabled? }]`; without code dropped")
    judgePrompt = serializers.CharField(required=False, allow_null=True)
    judgeModel = serializers.CharField(required=False, allow_null=True)
    sovereigntyIndex = AnyJSON(required=False, help_text="`{ enabled, models }`")
    ci = AnyJSON(
        required=False,
        help_text="`{ enabled, webhookUrl, passRateThreshold, failFast, exposeTestInputs, thresholds }`",
    )


class DatasetEditSerializer(DatasetBodySerializer):
    """Any subset of the create keys."""

    name = serializers.CharField(required=False, max_length=300)
    baseVersion = serializers.IntegerField(
        required=False, allow_null=True, help_text="The version the edit began from; 409 when there is a newer one."
    )


class DatasetSerializer(serializers.Serializer):
    """A dataset; members that are not required are left out when unset."""

    _id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField(required=False)
    numberOfRequests = serializers.IntegerField()
    acceptanceCriteria = serializers.CharField(required=False)
    rejectionCriteria = serializers.CharField(required=False)
    evaluationCriteria = serializers.CharField(required=False)
    vectorSimilarity = AnyJSON(required=False)
    jaccardSimilarity = AnyJSON(required=False)
    bleuScore = AnyJSON(required=False)
    rougeScore = AnyJSON(required=False)
    codeScorers = serializers.ListField(child=serializers.DictField(), required=False)
    judgePrompt = serializers.CharField(required=False)
    judgeModel = serializers.CharField(required=False)
    sovereigntyIndex = serializers.DictField(required=False)
    ci = serializers.DictField(required=False)
    questions = serializers.ListField(child=serializers.DictField())
    status = serializers.CharField()
    createdAt = serializers.DateTimeField()


class DatasetListSerializer(serializers.Serializer):
    """Every dataset of the project."""

    datasets = DatasetSerializer(many=True)


class SuccessSerializer(serializers.Serializer):
    """Done."""

    success = serializers.BooleanField()


class DeletedSerializer(serializers.Serializer):
    """Gone."""

    deleted = serializers.BooleanField()


class VersionSerializer(serializers.Serializer):
    """One entry of a history; `version` is shown as v0, v1, …"""

    _id = serializers.CharField()
    version = serializers.IntegerField()
    snapshot = serializers.DictField()
    createdAt = serializers.DateTimeField()
    changeSummary = serializers.CharField()
    creator = serializers.CharField(allow_null=True)


class VersionCountsSerializer(serializers.Serializer):
    """Entries of each dataset's history."""

    versionCounts = serializers.DictField(child=serializers.IntegerField())


class CasePreviewBodySerializer(serializers.Serializer):
    """One of the two."""

    traceId = serializers.CharField(required=False, allow_null=True)
    sessionId = serializers.CharField(required=False, allow_null=True)


class TurnSerializer(serializers.Serializer):
    """What was asked and what came of it."""

    query = serializers.CharField()
    actualOutput = serializers.CharField(allow_null=True)
    error = serializers.CharField(allow_null=True)
    traceId = serializers.CharField()


class CasePreviewSerializer(serializers.Serializer):
    """A case that is stored nowhere yet, and the turns it was made from."""

    case = serializers.DictField(help_text="`{ main_question, follow_up_questions, source }`")
    turns = TurnSerializer(many=True)


class SuggestBodySerializer(serializers.Serializer):
    """A real exchange."""

    query = serializers.CharField()
    actualOutput = serializers.CharField(required=False, allow_null=True)
    error = serializers.CharField(required=False, allow_null=True)


class SuggestionSerializer(serializers.Serializer):
    """A draft for a person to edit."""

    expected = serializers.CharField()
    rationale = serializers.CharField(allow_blank=True)


class AddCaseBodySerializer(serializers.Serializer):
    """The case to append."""

    case = serializers.DictField(
        help_text="`{ main_question: { query, … }, follow_up_questions, source: { traceId?, sessionId?, signalId? } }`"
    )
    dedupe = serializers.BooleanField(required=False, default=True)


class AddedCaseSerializer(serializers.Serializer):
    """Stored."""

    ok = serializers.BooleanField()
    caseCount = serializers.IntegerField()


class DuplicateOfSerializer(serializers.Serializer):
    """The case that is there."""

    reason = serializers.CharField(help_text="same-source, same-query or similar-query")
    existingQuery = serializers.CharField(allow_blank=True)
    similarity = serializers.FloatField(required=False)


class DuplicateSerializer(serializers.Serializer):
    """Refused as one too many."""

    error = serializers.CharField()
    duplicate = DuplicateOfSerializer()


class SynthesizeBodySerializer(serializers.Serializer):
    """The text and what to make of it."""

    sourceText = serializers.CharField()
    count = serializers.IntegerField(required=False, allow_null=True, default=5)
    guidance = serializers.CharField(required=False, allow_null=True)
    datasetId = serializers.CharField(required=False, allow_null=True)


class DraftCaseSerializer(serializers.Serializer):
    """A drafted case."""

    query = serializers.CharField()
    expectedResults = serializers.CharField(allow_blank=True)


class SynthesizedSerializer(serializers.Serializer):
    """Drafts to choose from, and the model that wrote them."""

    cases = DraftCaseSerializer(many=True)
    judgeModel = serializers.CharField()
