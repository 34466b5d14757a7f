"""Limits of the ingest path, quotas and monitoring switches; see config/env.py for what each does."""

from config import env

INGEST_FLUSH_MS = env.required_integer("AGENTX_INGEST_FLUSH_MS")
INGEST_FLUSH_SIZE = max(1, env.required_integer("AGENTX_INGEST_FLUSH_SIZE"))
INGEST_QUEUE_MAX = max(1, env.required_integer("AGENTX_INGEST_QUEUE_MAX"))
INGEST_MAX_FIELD_CHARS = env.required_integer("AGENTX_INGEST_MAX_FIELD_CHARS")
MAX_BODY_BYTES = 10 * 1024 * 1024
OTLP_GRPC_PORT = env.required_integer("AGENTX_OTLP_GRPC_PORT")

RATE_LIMIT = env.boolean("AGENTX_RATE_LIMIT")
RATE_LIMIT_CREDENTIAL = env.required_integer("AGENTX_RATE_LIMIT_CREDENTIAL")
RATE_LIMIT_DATA_PLANE = env.required_integer("AGENTX_RATE_LIMIT_DATA_PLANE")
TRUST_PROXY = env.text("AGENTX_TRUST_PROXY")

QUOTA_TRACES_PER_DAY = env.integer("AGENTX_QUOTA_TRACES_PER_DAY")
QUOTA_JUDGE_CALLS_PER_DAY = env.integer("AGENTX_QUOTA_JUDGE_CALLS_PER_DAY")
QUOTA_ONLINE_JUDGE_CALLS_PER_DAY = env.integer("AGENTX_QUOTA_ONLINE_JUDGE_CALLS_PER_DAY")

MONITOR_CHILD_SPANS = env.boolean("AGENTX_MONITOR_CHILD_SPANS")
OTEL_MONITOR = env.boolean("AGENTX_OTEL_MONITOR")
PG_PARTITION_RETENTION_DAYS = env.integer("AGENTX_PG_PARTITION_RETENTION_DAYS")
INGEST_INLINE = False
METRICS_TOKEN = env.text("AGENTX_METRICS_TOKEN")
ADMIN_TOKEN = env.text("AGENTX_ADMIN_TOKEN")
# Longest time, in seconds, this process may go on with a key or a price that another process has changed.
CACHE_SECONDS = 1.0

HOSTED_CI = env.boolean("AGENTX_HOSTED_CI")
