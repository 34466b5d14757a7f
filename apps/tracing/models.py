"""What agents did: spans, sessions, agents, and the aggregates readers want.

Nothing outside `apps.tracing.store` queries the spans table; everyone else calls the store or the selectors.
Aggregates (Session, Rollup, ToolRollup) are sums of signed contributions of stored spans: a row that is inserted,
adopted by its root, re-priced or deleted adds its new contribution and takes back its old one, so an aggregate always
equals what a scan of the spans would give.
"""

from __future__ import annotations

from django.db import models

from apps.core.ids import default_id
from apps.core.models import WireModel
from apps.projects.models import Project


class Agent(WireModel):
    """The registered producer of root spans; several may share a name, the oldest then takes traces of that name."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="agents")
    name = models.CharField(max_length=500)

    class Meta:
        indexes = [models.Index(fields=["project", "name", "created_at", "id"])]

    def __str__(self) -> str:
        return self.name


class AgentProfile(models.Model):
    """An agent's monitoring settings; absent until somebody saves them."""

    agent = models.OneToOneField(Agent, on_delete=models.CASCADE, primary_key=True, related_name="profile")
    enabled = models.BooleanField(default=True)
    coverage_mode = models.CharField(max_length=50, default="all")
    failure_detection_enabled = models.BooleanField(default=True)
    info_detection_enabled = models.BooleanField(default=True)
    topics_enabled = models.BooleanField(default=True)
    sample_rate = models.FloatField(default=1.0)
    retention_days = models.IntegerField(default=30)
    threshold_overrides = models.JSONField(default=dict)
    channels = models.JSONField(default=list)
    dataset_id = models.CharField(max_length=40, null=True, blank=True)
    approval_policy = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)


class Status(models.IntegerChoices):
    """A span failed when it carries `error`."""

    OK = 0
    ERROR = 1


class Traffic(models.IntegerChoices):
    """Which population a row belongs to. KPIs count PRODUCTION only; list and cost tell EVAL_RUN apart."""

    PRODUCTION = 0
    EVAL_RUN = 1
    UNMONITORED = 2  # production rows sent with monitor:false: listed, never checked, outside KPIs


class Outcome(models.IntegerChoices):
    """The operational classification of a checked root (source 1:7172-7180), in order of precedence."""

    HEALTHY = 0
    TOOL_FAILURE = 1
    TRACE_ERROR = 2
    EMPTY_RESPONSE = 3


class Span(models.Model):
    """One stored row; a root (trace) has no `parent_span_id`. Payload columns hold JSON text as it came.

    `id` carries the millisecond of `createdAt` (see apps.core.ids), so newest-first paging, time ranges and Postgres'
    daily partitions all run on the primary key.
    """

    id = models.CharField(primary_key=True, max_length=21, default=default_id)
    project = models.ForeignKey(
        Project, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    span_id = models.TextField(null=True)
    parent_span_id = models.TextField(null=True)
    root_id = models.CharField(
        max_length=21, null=True, help_text="Id of the root row; null while the root is missing."
    )
    session_id = models.TextField(null=True)
    agent_id = models.CharField(max_length=21, null=True)
    name = models.TextField()
    kind = models.CharField(max_length=12)
    status = models.SmallIntegerField(choices=Status.choices, default=Status.OK)
    traffic = models.SmallIntegerField(choices=Traffic.choices, default=Traffic.PRODUCTION)
    outcome = models.SmallIntegerField(choices=Outcome.choices, null=True, help_text="Null: not a checked root.")
    framework = models.CharField(max_length=64, null=True)
    model = models.TextField(null=True)
    created_ms = models.BigIntegerField()
    received_ms = models.BigIntegerField()
    start_ns = models.BigIntegerField(null=True)
    latency_ms = models.FloatField(null=True)
    input_tokens = models.BigIntegerField(null=True)
    output_tokens = models.BigIntegerField(null=True)
    cache_read_tokens = models.BigIntegerField(null=True)
    cache_write_tokens = models.BigIntegerField(null=True)
    child_input_tokens = models.BigIntegerField(
        default=0, help_text="Sum of what direct children cover; see store.counts."
    )
    child_output_tokens = models.BigIntegerField(default=0)
    child_cache_read_tokens = models.BigIntegerField(default=0)
    child_cache_write_tokens = models.BigIntegerField(default=0)
    cost_usd = models.FloatField(null=True, help_text="Of the recorded counts; null when unpriced or without counts.")
    own_cost_usd = models.FloatField(null=True, help_text="Of recorded minus what direct children cover.")
    tool_count = models.IntegerField(default=0)
    tool_failures = models.IntegerField(default=0)
    child_models = models.TextField(
        null=True, help_text="Of a root: JSON list of the models its descendants ran on, other than its own."
    )
    error = models.TextField(null=True)
    input = models.TextField(null=True)
    output = models.TextField(null=True)
    tool_calls = models.TextField(null=True)
    metadata = models.TextField(null=True)
    performance_summary = models.TextField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["project", "id"], name="span_roots", condition=models.Q(parent_span_id=None)),
            models.Index(fields=["project", "session_id"], name="span_session"),
            models.Index(
                fields=["project", "parent_span_id"],
                name="span_children",
                condition=models.Q(parent_span_id__isnull=False),
            ),
            models.Index(fields=["root_id"], name="span_tree", condition=models.Q(parent_span_id__isnull=False)),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "span_id"], name="span_identity", condition=models.Q(span_id__isnull=False)
            )
        ]

    def __str__(self) -> str:
        return self.name


class Session(models.Model):
    """Aggregate of all rows with one session id; listed when it has production rows (eval-run rows are not counted)."""

    project = models.ForeignKey(
        Project, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    session_id = models.TextField()
    agent_id = models.CharField(max_length=21, null=True, help_text="Agent of the first root.")
    framework = models.CharField(max_length=64, null=True)
    turn_count = models.IntegerField(default=0)
    span_count = models.IntegerField(default=0)
    error_count = models.IntegerField(default=0)
    total_latency_ms = models.FloatField(default=0)
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cost_usd = models.FloatField(null=True, help_text="Null when no row of it has a price.")
    priced = models.IntegerField(default=0, help_text="Rows whose cost is known.")
    simulated = models.BooleanField(default=False)
    first_turn_id = models.CharField(
        max_length=21, null=True, help_text="Earliest root: agent and framework are those of this row."
    )
    first_ms = models.BigIntegerField()
    last_ms = models.BigIntegerField(help_text="End of activity by the rows' own times.")
    stored_ms = models.BigIntegerField(help_text="When its last new row was stored.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "session_id"], name="one_row_per_session")]
        indexes = [
            models.Index(
                fields=["project", "last_ms", "id"], name="session_activity", condition=models.Q(span_count__gt=0)
            )
        ]


class Grain(models.IntegerChoices):
    """Width of a rollup bucket."""

    FIVE_MINUTES = 0
    HOUR = 1
    DAY = 2
    ALL_TIME = 3  # bucket 0


class Rollup(models.Model):
    """Counts and sums of spans that share a bucket of time and these dimensions; '' stands for none.

    `latency` is a JSON object {histogram bucket: count} of root latencies, see apps.tracing.histogram.
    """

    project = models.ForeignKey(
        Project, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    grain = models.SmallIntegerField(choices=Grain.choices)
    bucket = models.BigIntegerField(help_text="Start of the bucket in seconds since 1970.")
    is_root = models.BooleanField()
    traffic = models.SmallIntegerField()
    agent_id = models.CharField(max_length=21)
    framework = models.CharField(max_length=64)
    model = models.TextField()
    kind = models.CharField(max_length=12)
    status = models.SmallIntegerField()
    spans = models.BigIntegerField(default=0)
    healthy = models.BigIntegerField(default=0)
    failing = models.BigIntegerField(default=0)
    tool_failing = models.BigIntegerField(default=0)
    tool_calls = models.BigIntegerField(default=0)
    tool_failures = models.BigIntegerField(default=0)
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cost_usd = models.FloatField(default=0)
    priced = models.BigIntegerField(default=0, help_text="Rows whose cost is known.")
    latency_sum = models.FloatField(default=0)
    latency = models.TextField(default="{}")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "project",
                    "grain",
                    "bucket",
                    "is_root",
                    "traffic",
                    "agent_id",
                    "framework",
                    "model",
                    "kind",
                    "status",
                ],
                name="one_rollup_row",
            )
        ]


class ToolRollup(models.Model):
    """Like Rollup, for roots by the tools their `toolCalls` name; a root counts once for each distinct tool."""

    project = models.ForeignKey(
        Project, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    grain = models.SmallIntegerField(choices=Grain.choices)
    bucket = models.BigIntegerField()
    traffic = models.SmallIntegerField()
    tool = models.CharField(max_length=200)
    agent_id = models.CharField(max_length=21)
    framework = models.CharField(max_length=64)
    model = models.TextField()
    status = models.SmallIntegerField()
    roots = models.BigIntegerField(default=0)
    calls = models.BigIntegerField(default=0)
    failures = models.BigIntegerField(default=0)
    failing = models.BigIntegerField(default=0)
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cost_usd = models.FloatField(default=0)
    latency_sum = models.FloatField(default=0)
    latency = models.TextField(default="{}")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "grain", "bucket", "traffic", "tool", "agent_id", "framework", "model", "status"],
                name="one_tool_rollup_row",
            )
        ]


class ModelRollup(models.Model):
    """Like ToolRollup, for roots by the models that they or their descendants ran on; once for each distinct model."""

    project = models.ForeignKey(
        Project, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    grain = models.SmallIntegerField(choices=Grain.choices)
    bucket = models.BigIntegerField()
    traffic = models.SmallIntegerField()
    model = models.TextField()
    roots = models.BigIntegerField(default=0)
    healthy = models.BigIntegerField(default=0)
    failing = models.BigIntegerField(default=0)
    latency_sum = models.FloatField(default=0)
    latency = models.TextField(default="{}")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "grain", "bucket", "traffic", "model"], name="one_model_rollup_row"
            )
        ]


class RollupJournal(models.Model):
    """Contributions of one committed batch, not yet folded into the aggregates.

    Written in the batch's own transaction and removed in the fold's, so a crash neither loses nor doubles a count and
    parallel writers never wait for each other's hot rows.
    """

    id = models.BigAutoField(primary_key=True)
    payload = models.BinaryField()


class OperationalEvent(models.Model):
    """The one operational failure of a checked root: tool failure, trace error or empty response."""

    id = models.CharField(primary_key=True, max_length=21, default=default_id)
    project = models.ForeignKey(
        Project, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    trace_id = models.CharField(max_length=21)
    agent_id = models.CharField(max_length=21, null=True)
    key = models.CharField(
        max_length=240, help_text="agent-tool-failure:<tool>, agent-trace-error or empty-agent-response"
    )
    created_ms = models.BigIntegerField()

    class Meta:
        indexes = [models.Index(fields=["project", "created_ms"], name="operational_time")]
        constraints = [models.UniqueConstraint(fields=["trace_id"], name="one_operational_event")]


class CheckItem(models.Model):
    """A root waiting for the live checks; written with the span only when its project has a check switched on."""

    id = models.BigAutoField(primary_key=True)
    project = models.ForeignKey(
        Project, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    trace_id = models.CharField(max_length=21)
    pattern_ids = models.JSONField(null=True)
    enqueued_ms = models.BigIntegerField()
    claimed_until_ms = models.BigIntegerField(default=0)
    attempts = models.SmallIntegerField(default=0)
