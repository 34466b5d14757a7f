"""Every variable the server reads, declared once as data.

Settings, `agentx-server --help`, docs/configuration.md and the tests that compare them all derive from
`VARIABLES`. Read a value with `env.text("NAME")`, `env.integer(...)`, `env.boolean(...)`; the kind, the
default and the documentation stand in the declaration and nowhere else.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "secret", "integer", "boolean", "path", "url"]


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable: its name, kind, documented default and what it does.

    `default` is the text the documentation shows and that is parsed when the variable is unset; None means unset.
    `flag` is the command-line flag of `agentx-server` that sets the same value, if there is one.
    """

    name: str
    kind: Kind
    default: str | None
    doc: str
    section: str
    flag: str | None = None


class InvalidVariable(ValueError):
    """A variable holds a value its kind does not allow; the text names the variable and what was expected."""


VARIABLES: dict[str, Variable] = {}


def _declare(section: str, *rows: tuple[str, Kind, str | None, str] | tuple[str, Kind, str | None, str, str]) -> None:
    for row in rows:
        name, kind, default, doc = row[0], row[1], row[2], row[3]
        flag = row[4] if len(row) == 5 else None
        VARIABLES[name] = Variable(name, kind, default, doc, section, flag)


_declare(
    "Core",
    ("PORT", "integer", "4700", "Port of the API, the dashboard, /health and /metrics.", "--port"),
    ("AGENTX_HOST", "text", "0.0.0.0", "Address the server listens on.", "--host"),
    ("AGENTX_HOME", "path", "~/.agentx", "Directory of the SQLite file (agentx.db) and config.json."),
    (
        "AGENTX_DB_URL",
        "url",
        None,
        "Postgres connection string (postgres://user:pass@host:5432/db). Unset: SQLite in AGENTX_HOME.",
        "--db-url",
    ),
    ("AGENTX_LOG_LEVEL", "text", "info", "Level of the JSON log lines on stdout: debug, info, warning, error."),
    ("OPENAI_API_KEY", "secret", None, "Key for OpenAI models. A key saved in Settings wins."),
    ("ANTHROPIC_API_KEY", "secret", None, "Key for Anthropic models. A key saved in Settings wins."),
    ("GEMINI_API_KEY", "secret", None, "Key for Gemini models. A key saved in Settings wins."),
    ("OPENROUTER_API_KEY", "secret", None, "Key for OpenRouter models. A key saved in Settings wins."),
)
_declare(
    "Storage tiers",
    (
        "AGENTX_TELEMETRY_URL",
        "url",
        None,
        "ClickHouse address for spans. Not built yet: setting it stops the start with a clear message.",
    ),
    (
        "AGENTX_TELEMETRY_TTL_DAYS",
        "integer",
        "90",
        "Span retention baked into the ClickHouse table on first start. Not built yet.",
    ),
    (
        "AGENTX_PG_PARTITION_RETENTION_DAYS",
        "integer",
        None,
        "Postgres: whole daily partitions older than this are dropped by the daily job. Unset: keep everything.",
    ),
)
_declare(
    "Ingest and rate limits",
    (
        "AGENTX_INGEST_FLUSH_MS",
        "integer",
        "10",
        "How long, from a batch's first span, the writer waits for more before it writes. Up to 10 nothing is waited for: a batch is whatever queued up while the one before was written. A longer time makes fewer, larger transactions and every answer later by up to that time.",
    ),
    ("AGENTX_INGEST_FLUSH_SIZE", "integer", "500", "Most spans in one batch."),
    (
        "AGENTX_INGEST_QUEUE_MAX",
        "integer",
        "10000",
        "Bound of the ingest queue; beyond it ingest answers 429 with Retry-After: 1.",
    ),
    (
        "AGENTX_INGEST_MAX_FIELD_CHARS",
        "integer",
        "100000",
        "Cap of the serialized input, output, toolCalls and metadata each; longer values are stored truncated with a marker.",
    ),
    (
        "AGENTX_OTLP_GRPC_PORT",
        "integer",
        "4317",
        "Port of the OTLP gRPC receiver, opened when the grpc extra is installed. 0 turns it off.",
    ),
    ("AGENTX_RATE_LIMIT", "boolean", "on", "off turns both rate limits off."),
    ("AGENTX_RATE_LIMIT_CREDENTIAL", "integer", "120", "Requests a minute and IP on the credential surface."),
    ("AGENTX_RATE_LIMIT_DATA_PLANE", "integer", "6000", "Requests a minute and IP on all other API routes."),
)
_declare(
    "Background work",
    (
        "AGENTX_BROKER_URL",
        "url",
        None,
        "Celery broker (redis:// or amqp://). Unset: a queue in the same database.",
    ),
    (
        "AGENTX_WORKER",
        "boolean",
        "on",
        "on: the server starts one worker process of its own. off: run `agentx-server worker` elsewhere.",
    ),
)
_declare(
    "Monitoring",
    ("AGENTX_MONITOR_CHILD_SPANS", "boolean", "false", "true also checks child spans, not only root spans."),
    ("AGENTX_OTEL_MONITOR", "boolean", "true", "false: traces that come over OTLP are recorded but never checked."),
    ("AGENTX_SESSION_SWEEP", "boolean", "true", "false stops the background sweep that judges idle sessions."),
    (
        "AGENTX_SESSION_SWEEP_WINDOW_HOURS",
        "integer",
        "24",
        "How far back the session sweep looks: up to 24 is 24h, up to 168 is 7d, above that 30d.",
    ),
    (
        "AGENTX_IMPROVEMENT_SWEEP",
        "boolean",
        "true",
        "false stops the background sweep that drafts improvement proposals.",
    ),
)
_declare(
    "Evaluation",
    (
        "AGENTX_HOSTED_CI",
        "boolean",
        "on",
        "off: the hosted-style CI routes (/ingest/ci-runs and the client's model list) answer 404.",
    ),
)
_declare(
    "Quotas",
    (
        "AGENTX_QUOTA_JUDGE_CALLS_PER_DAY",
        "integer",
        None,
        "Judge model calls a day, per instance (per organization when multi-tenant). Unset: unlimited.",
    ),
    (
        "AGENTX_QUOTA_ONLINE_JUDGE_CALLS_PER_DAY",
        "integer",
        None,
        "Live trace-scope judge calls a day and project. Unset: unlimited.",
    ),
    (
        "AGENTX_QUOTA_TRACES_PER_DAY",
        "integer",
        None,
        "Root traces ingested a day (UTC) and project; children are exempt. Unset: unlimited.",
    ),
)
_declare(
    "Auth and security",
    (
        "AGENTX_AUTH",
        "text",
        "disabled",
        "disabled: whoever reaches the port is trusted. enabled: accounts (not built yet, the start stops with a clear message).",
    ),
    (
        "AGENTX_AUTH_SECRET",
        "secret",
        None,
        "Signs sessions and protects stored secrets. Unset: one is made on first start and kept in AGENTX_HOME/config.json.",
    ),
    (
        "AGENTX_MULTI_TENANT",
        "boolean",
        "false",
        "With AGENTX_AUTH=enabled: one organization per sign-up. Ignored with a warning otherwise.",
    ),
    ("AGENTX_PUBLIC_URL", "url", None, "Outside base URL for links, redirects and cookies."),
    (
        "AGENTX_TRUSTED_ORIGINS",
        "text",
        None,
        "Comma-separated extra origins that may post to the dashboard and the auth routes.",
    ),
    ("AGENTX_OPEN_SIGNUP", "boolean", "false", "Enabled mode: later sign-ups join the organization as member."),
    ("AGENTX_TRUST_PROXY", "text", None, "true, a hop count or CIDRs: take the client address from X-Forwarded-For."),
    (
        "AGENTX_ADMIN_TOKEN",
        "secret",
        None,
        "Unlocks /api/v1/admin/* (header x-admin-token). Unset: those routes are 404.",
    ),
    ("AGENTX_METRICS_TOKEN", "secret", None, "When set, /metrics needs Authorization: Bearer <token>."),
    ("AGENTX_BLOCK_PRIVATE_URLS", "boolean", "false", "true refuses private addresses in URLs that users give."),
)
_declare(
    "Email",
    ("AGENTX_RESEND_API_KEY", "secret", None, "Mail through Resend."),
    ("AGENTX_SMTP_URL", "secret", None, "Mail through SMTP, e.g. smtp://user:pass@smtp.example.com:587."),
    ("AGENTX_EMAIL_FROM", "text", "AgentX <noreply@localhost>", "Sender of mail."),
    ("AGENTX_EMAIL_DEBUG_DIR", "path", None, "Write each mail as a JSON file here instead of sending it."),
    (
        "AGENTX_REQUIRE_EMAIL_VERIFICATION",
        "boolean",
        "false",
        "New accounts must open a mailed link before the first sign-in.",
    ),
)
_declare(
    "Social sign-in and SSO",
    ("AGENTX_GOOGLE_CLIENT_ID", "text", None, "Google sign-in, with its secret."),
    ("AGENTX_GOOGLE_CLIENT_SECRET", "secret", None, "Google sign-in, with its id."),
    ("AGENTX_GITHUB_CLIENT_ID", "text", None, "GitHub sign-in, with its secret."),
    ("AGENTX_GITHUB_CLIENT_SECRET", "secret", None, "GitHub sign-in, with its id."),
    ("AGENTX_OIDC_ISSUER", "url", None, "OIDC issuer; with id and secret it turns SSO on."),
    ("AGENTX_OIDC_CLIENT_ID", "text", None, "OIDC client id."),
    ("AGENTX_OIDC_CLIENT_SECRET", "secret", None, "OIDC client secret."),
    ("AGENTX_OIDC_NAME", "text", "SSO", "Label of the SSO button."),
)


def text(name: str) -> str | None:
    """The variable as text, its declared default when unset or blank, None when there is no default."""
    declared = VARIABLES[name]
    value = os.environ.get(name, "").strip()
    return value or declared.default


def required_text(name: str) -> str:
    """The variable as text; for variables that have a default."""
    value = text(name)
    if value is None:
        raise InvalidVariable(f"{name} is not set")
    return value


def integer(name: str) -> int | None:
    """The variable as a whole number of 0 or more; raises InvalidVariable for anything else."""
    value = text(name)
    if value is None:
        return None
    try:
        number = int(value)
    except ValueError:
        number = -1
    if number < 0:
        raise InvalidVariable(f"{name} must be a whole number of 0 or more, not {value!r}")
    return number


def required_integer(name: str) -> int:
    """Like integer(), for variables that have a default."""
    value = integer(name)
    if value is None:
        raise InvalidVariable(f"{name} is not set")
    return value


_TRUE, _FALSE = {"1", "true", "on", "yes", "enabled"}, {"0", "false", "off", "no", "disabled"}


def boolean(name: str) -> bool:
    """The variable as a switch (true/false, on/off, yes/no, 1/0); raises InvalidVariable for anything else."""
    value = (text(name) or "false").lower()
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise InvalidVariable(f"{name} must be true or false, not {value!r}")
