"""The shapes of the scorer routes for the OpenAPI document. Answers are built by `wire`; these describe them."""

from __future__ import annotations

from rest_framework import serializers

from apps.tracing.api.serializers import AnyJSON

SEVERITIES = ("low", "medium", "high", "critical")


class ToggleSerializer(serializers.Serializer):
    """A similarity metric; `model` only for the vector one."""

    enabled = serializers.BooleanField()
    model = serializers.CharField(required=False)


class SovereigntySerializer(serializers.Serializer):
    """Models every case runs once with."""

    enabled = serializers.BooleanField()
    models = serializers.ListField(child=serializers.CharField())


class CodeScorerSerializer(serializers.Serializer):
    """A JavaScript function body that scores an answer."""

    id = serializers.CharField(required=False)
    name = serializers.CharField(required=False, allow_null=True)
    code = serializers.CharField()
    enabled = serializers.BooleanField(required=False, default=True)


class RubricSerializer(serializers.Serializer):
    """The rubric. Null prompt and model mean the server's own."""

    acceptanceCriteria = serializers.CharField(required=False, allow_null=True)
    rejectionCriteria = serializers.CharField(required=False, allow_null=True)
    evaluationCriteria = serializers.CharField(required=False, allow_null=True)
    judgePrompt = serializers.CharField(
        required=False, allow_null=True, help_text="May hold {input}, {output}, {expected} and {context}."
    )
    judgeModel = serializers.CharField(required=False, allow_null=True)
    toolContext = serializers.ChoiceField(choices=("none", "simple", "detailed"), required=False, default="simple")
    requiresExpected = serializers.BooleanField(required=False, default=False)


class OfflineSerializer(serializers.Serializer):
    """How dataset runs grade with the scorer."""

    numberOfRequests = serializers.IntegerField(required=False, default=1)
    isDefault = serializers.BooleanField(required=False, default=False)
    status = serializers.CharField(required=False, default="published")
    vectorSimilarity = ToggleSerializer(required=False)
    jaccardSimilarity = ToggleSerializer(required=False)
    bleuScore = ToggleSerializer(required=False)
    rougeScore = ToggleSerializer(required=False)
    sovereigntyIndex = SovereigntySerializer(required=False)
    thresholds = AnyJSON(required=False, help_text='Minimum per metric: `{ "rating": 7, "vectorSimilarity": 0.8 }`')
    codeScorers = CodeScorerSerializer(many=True, required=False)


class LiveProfileSerializer(serializers.Serializer):
    """Whether and how live traffic is rated."""

    enabled = serializers.BooleanField(required=False, default=False)
    sampleRate = serializers.FloatField(required=False, default=0.1)
    scope = serializers.ChoiceField(choices=("trace", "session"), required=False, default="trace")
    alertThreshold = serializers.FloatField(required=False, allow_null=True, default=5)
    severity = serializers.ChoiceField(choices=SEVERITIES, required=False, default="medium")
    idleSeconds = serializers.IntegerField(required=False, default=120)
    scopeMode = serializers.ChoiceField(choices=("all", "selected"), required=False, default="all")
    agentIds = serializers.ListField(child=serializers.CharField(), required=False)


class OnlineSerializer(LiveProfileSerializer):
    """Whether and how the scorer rates live traffic."""

    profileId = serializers.CharField(read_only=True)


class JudgeScorerBodySerializer(serializers.Serializer):
    """What create takes."""

    name = serializers.CharField(max_length=300)
    description = serializers.CharField(required=False, allow_null=True)
    judge = RubricSerializer(required=False)
    offline = OfflineSerializer(required=False)
    online = OnlineSerializer(required=False, allow_null=True)


class JudgeScorerEditSerializer(JudgeScorerBodySerializer):
    """Any subset; keys inside a section merge over the stored ones, `online: null` takes the live profile away."""

    name = serializers.CharField(required=False, max_length=300)
    baseVersion = serializers.IntegerField(
        required=False, allow_null=True, help_text="The version the edit began from; 409 when there is a newer one."
    )


class CloneSerializer(serializers.Serializer):
    """What a copy may be called."""

    name = serializers.CharField(required=False, max_length=300, help_text="Default: as the source, or with (copy).")


class JudgeScorerSerializer(serializers.Serializer):
    """One rubric with two setting profiles."""

    _id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField(allow_null=True)
    judge = RubricSerializer()
    offline = OfflineSerializer()
    online = OnlineSerializer(allow_null=True)
    seeded = serializers.BooleanField(help_text="True only on shipped templates.")
    builtinKey = serializers.CharField(required=False)
    createdAt = serializers.DateTimeField()


class OneJudgeScorerSerializer(serializers.Serializer):
    """A judge scorer."""

    judgeScorer = JudgeScorerSerializer()


class JudgeScorerListSerializer(serializers.Serializer):
    """Every judge scorer of the project, newest first."""

    judgeScorers = JudgeScorerSerializer(many=True)


class GradingConfigBodySerializer(serializers.Serializer):
    """A grading config: rubric and offline profile, flat."""

    name = serializers.CharField(max_length=300)
    description = serializers.CharField(required=False, allow_null=True)
    numberOfRequests = serializers.IntegerField(required=False, default=1)
    acceptanceCriteria = serializers.CharField(required=False, allow_null=True)
    rejectionCriteria = serializers.CharField(required=False, allow_null=True)
    evaluationCriteria = serializers.CharField(required=False, allow_null=True)
    judgePrompt = serializers.CharField(required=False, allow_null=True)
    judgeModel = serializers.CharField(required=False, allow_null=True)
    vectorSimilarity = ToggleSerializer(required=False)
    jaccardSimilarity = ToggleSerializer(required=False)
    bleuScore = ToggleSerializer(required=False)
    rougeScore = ToggleSerializer(required=False)
    sovereigntyIndex = SovereigntySerializer(required=False)
    codeScorers = CodeScorerSerializer(many=True, required=False)


class GradingConfigSerializer(GradingConfigBodySerializer):
    """A judge scorer's rubric and offline profile, flat."""

    _id = serializers.CharField()
    status = serializers.CharField()
    createdAt = serializers.DateTimeField()


class GradingConfigListSerializer(serializers.Serializer):
    """Every judge scorer of the project, never a dataset's own grading."""

    evaluationSettings = GradingConfigSerializer(many=True)


class EvaluatorBodySerializer(LiveProfileSerializer):
    """A live profile over a grading config."""

    name = serializers.CharField(max_length=300)
    evaluationSettingsId = serializers.CharField()
    enabled = serializers.BooleanField(required=False, default=True)


class EvaluatorEditSerializer(EvaluatorBodySerializer):
    """Any subset of the create keys."""

    name = serializers.CharField(required=False, max_length=300)
    evaluationSettingsId = serializers.CharField(required=False)


class EvaluatorSerializer(EvaluatorBodySerializer):
    """A judge scorer's live profile by itself; `_id` is its `profileId`."""

    _id = serializers.CharField()
    builtinKey = serializers.CharField(required=False)
    createdAt = serializers.DateTimeField()


class OneEvaluatorSerializer(serializers.Serializer):
    """An online evaluator."""

    evaluator = EvaluatorSerializer()


class EvaluatorListSerializer(serializers.Serializer):
    """Every judge scorer that has a live profile, newest first."""

    evaluators = EvaluatorSerializer(many=True)


class GroupMemberSerializer(serializers.Serializer):
    """A scorer inside a group, by reference."""

    kind = serializers.ChoiceField(choices=("judge", "pattern", "custom"))
    refId = serializers.CharField()
    weight = serializers.FloatField(required=False, default=1)
    gate = serializers.BooleanField(required=False, default=False)


class GroupBodySerializer(serializers.Serializer):
    """What create takes."""

    name = serializers.CharField(max_length=300)
    description = serializers.CharField(required=False, allow_null=True)
    members = GroupMemberSerializer(many=True)
    online = LiveProfileSerializer(required=False, allow_null=True)


class GroupEditSerializer(GroupBodySerializer):
    """Any subset; `online` merges over the stored profile, null takes it away."""

    name = serializers.CharField(required=False, max_length=300)
    members = GroupMemberSerializer(many=True, required=False)


class GroupSerializer(GroupBodySerializer):
    """Scorers combined into one 0-10 score."""

    _id = serializers.CharField()
    createdAt = serializers.DateTimeField()


class OneGroupSerializer(serializers.Serializer):
    """A scorer group."""

    scorerGroup = GroupSerializer()


class GroupListSerializer(serializers.Serializer):
    """Every scorer group of the project, newest first."""

    scorerGroups = GroupSerializer(many=True)


class ScorerVersionSerializer(serializers.Serializer):
    """One entry of a scorer's history; `version` is shown as v0, v1, …"""

    _id = serializers.CharField()
    version = serializers.IntegerField()
    snapshot = serializers.DictField()
    createdAt = serializers.DateTimeField()
    changeSummary = serializers.CharField()
    creator = serializers.CharField(allow_null=True)
    note = serializers.CharField(required=False, help_text="What a tuning left.")


class ScorerVersionCountsSerializer(serializers.Serializer):
    """Entries of each scorer's history."""

    versionCounts = serializers.DictField(child=serializers.IntegerField())


class ScorerVersionDeletedSerializer(serializers.Serializer):
    """Gone."""

    deleted = serializers.BooleanField()
