"""The figures of the Overview, made ready for its template: the KPI strip, the charts, the lists beside them.

All numbers come from apps.analytics; nothing is computed here but shares of a whole and words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _

from apps.analytics import selectors as analytics
from apps.analytics.agents import AgentFigures
from apps.analytics.aggregates import agent_names
from apps.analytics.failures import TOOL_FAILURE_PREFIX
from apps.analytics.filters import OTHER, MetricFilters
from apps.core.times import parse_iso_ms
from apps.core.windows import DAY, HOUR, Window
from apps.dashboard import formats
from apps.dashboard.charts import Chart, Series, top_series
from apps.projects.models import Project

AGENTS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Figure:
    """One cell of the KPI strip. `kind` says how `value` and `before` are written: count, percent or duration."""

    label: str
    kind: str
    value: float | None
    change: float | None
    change_kind: str
    better: str
    before: float | None
    values: list[float | None]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Failing:
    """One row of Top failing; `share` is its part of the largest count, 0 to 100.

    `url` is the list the row leads to; empty where no filter of Live Traces names what failed.
    """

    name: str
    stream: str
    count: int
    share: float
    url: str
    verdict: str = "fail"


def window_words(window: Window) -> tuple[str, str]:
    """(`the last 7 days`, `the 7 days before`) for headings and small print."""
    if window.seconds % DAY or window.seconds == DAY:
        hours = window.seconds // HOUR
        return _("the last %(n)d hours") % {"n": hours}, _("the %(n)d hours before") % {"n": hours}
    days = window.seconds // DAY
    return _("the last %(n)d days") % {"n": days}, _("the %(n)d days before") % {"n": days}


def relative(now: float | None, before: float | None) -> float | None:
    """The change as a share of before; None without both or from nothing."""
    if now is None or not before:
        return None
    return (now - before) / before


def difference(now: float | None, before: float | None) -> float | None:
    """now - before, None when either is missing."""
    return None if now is None or before is None else now - before


class Overview:
    """Everything the page shows for one project, window and set of filters."""

    def __init__(self, project: Project, window: Window, filters: MetricFilters) -> None:
        self.project = project
        self.window = window
        self.filters = filters
        self.words, self.words_before = window_words(window)
        before = window.previous()
        self.kpis = analytics.kpis(project, window)
        self.kpis_before = analytics.kpis(project, before)
        self.trend = analytics.trend(project, window)
        self.metrics = analytics.metrics(project, window)
        self.metrics_before = analytics.metrics(project, before)
        filtered = any(getattr(filters, name) for name in ("agent", "model", "tool", "framework", "status"))
        self.filtered = analytics.metrics(project, window, filters) if filtered else self.metrics
        self.cost = analytics.cost_trend(project, window)
        self.cost_before = analytics.cost_trend(project, before)
        self.models = analytics.model_comparison(project, window)["models"]
        self.failing = analytics.top_failing(project, window)

    @property
    def has_filters(self) -> bool:
        """Whether the traffic charts are narrowed."""
        return self.filtered is not self.metrics

    @property
    def is_quiet(self) -> bool:
        """Whether nothing at all happened in the window."""
        return not self.metrics["totals"]["spans"] and not self.kpis["totalRuns"]

    # --- KPI strip

    def figures(self) -> list[Figure]:
        """The six key figures with their change and the shape of the window."""
        now, before = self.kpis, self.kpis_before
        points, buckets = self.trend["points"], self.metrics["buckets"]
        runs: list[float | None] = [point["healthy"] + point["failing"] for point in points]
        failure = [
            point["failing"] / (point["healthy"] + point["failing"]) if point["healthy"] + point["failing"] else None
            for point in points
        ]
        tools = [bucket["toolFailures"] / bucket["toolCalls"] if bucket["toolCalls"] else None for bucket in buckets]
        calls = self.metrics["totals"]["toolCalls"]
        return [
            Figure(
                _("Total runs"),
                "count",
                now["totalRuns"] or None,
                relative(now["totalRuns"], before["totalRuns"]),
                "share",
                "",
                before["totalRuns"] or None,
                runs,
            ),
            self._rate(_("Health rate"), "healthRate", "up", [point["healthRate"] for point in points]),
            self._rate(_("Failure rate"), "failureRate", "down", failure),
            self._rate(_("Downvote rate"), "downvoteRate", "down", [], note=_("no votes")),
            self._rate(
                _("Tool failure rate"),
                "toolFailureRate",
                "down",
                tools,
                note=_("%(n)s calls") % {"n": formats.count(calls)} if calls else "",
            ),
            Figure(
                _("p95 latency"),
                "duration",
                now["p95LatencyMs"],
                difference(now["p95LatencyMs"], before["p95LatencyMs"]),
                "duration",
                "down",
                before["p95LatencyMs"],
                [bucket["latency"]["p95"] for bucket in buckets],
            ),
        ]

    def _rate(self, label: str, name: str, better: str, values: list[float | None], note: str = "") -> Figure:
        return Figure(
            label,
            "percent",
            self.kpis[name],
            self.kpis["deltas"][name],
            "points",
            better,
            self.kpis_before[name],
            values,
            note,
        )

    # --- Charts

    def runs_chart(self) -> Chart:
        """Healthy and failing runs over time."""
        points = self.trend["points"]
        healthy, failing = sum(p["healthy"] for p in points), sum(p["failing"] for p in points)
        return Chart(
            id="runs",
            title=_("Runs"),
            sentence=_("Runs over %(window)s: %(healthy)s healthy, %(failing)s failing.")
            % {"window": self.words, "healthy": formats.count(healthy), "failing": formats.count(failing)},
            starts_ms=_starts(points),
            bucket_ms=self.window.step * 1000,
            series=[
                Series(_("Failing"), [p["failing"] for p in points], "fail", formats.count(failing)),
                Series(_("Healthy"), [p["healthy"] for p in points], "none", formats.count(healthy)),
            ],
            stacked=True,
            empty=_("No checked run in %(window)s.") % {"window": self.words},
            drill=reverse("dashboard:traces"),
        )

    def p95_chart(self) -> Chart:
        """p95 latency against the window before."""
        buckets, before = self.metrics["buckets"], self.metrics_before["buckets"]
        earlier = [bucket["latency"]["p95"] for bucket in before][-len(buckets) :]
        earlier = [None] * (len(buckets) - len(earlier)) + earlier
        values = [bucket["latency"]["p95"] for bucket in buckets]
        return Chart(
            id="p95",
            title=_("p95 latency"),
            sentence=_("p95 latency over %(window)s is %(now)s; it was %(before)s in %(window_before)s.")
            % {
                "window": self.words,
                "now": formats.duration(self.kpis["p95LatencyMs"]),
                "before": formats.duration(self.kpis_before["p95LatencyMs"]),
                "window_before": self.words_before,
            },
            starts_ms=_starts(buckets),
            bucket_ms=self.metrics["bucketMs"],
            series=[
                Series(_("This window"), values, "1", area=True),
                Series(_("The window before"), earlier, "6", dashed=True),
            ],
            kind="line",
            unit="ms",
        )

    def cost_chart(self) -> Chart:
        """Spend over time, stacked by model."""
        points = self.cost["points"]
        return Chart(
            id="cost",
            title=_("Total cost"),
            sentence=_("Cost over %(window)s by model, %(total)s in total.")
            % {"window": self.words, "total": formats.usd(self.cost["totalCost"])},
            starts_ms=_starts(points),
            bucket_ms=self.window.step * 1000,
            series=top_series([point["byModel"] for point in points], self.cost["totalsByModel"], note=formats.usd),
            unit="usd",
            stacked=True,
            empty=_("No priced tokens in %(window)s.") % {"window": self.words},
        )

    @property
    def cost_change(self) -> float | None:
        """Spend against the window before, as a share of it."""
        return relative(self.cost["totalCost"], self.cost_before["totalCost"])

    def unpriced(self) -> list[str]:
        """Models of the window's traffic whose tokens have no price."""
        return [row["model"] for row in self.models if row["totalCostUSD"] is None and self._has_tokens(row["model"])]

    def _has_tokens(self, model: str) -> bool:
        # The cost trend names a model exactly when it recorded tokens.
        return model in self.cost["totalsByModel"]

    def latency_chart(self) -> Chart:
        """Percentiles of root latencies under the filters."""
        buckets, total = self.filtered["buckets"], self.filtered["totals"]["latency"]
        return Chart(
            id="latency",
            title=_("Latency"),
            sentence=_("Latency over %(window)s: p50 %(p50)s, p95 %(p95)s, p99 %(p99)s.")
            % ({"window": self.words} | {name: formats.duration(total[name]) for name in ("p50", "p95", "p99")}),
            starts_ms=_starts(buckets),
            bucket_ms=self.filtered["bucketMs"],
            series=[
                Series(name, [bucket["latency"][name] for bucket in buckets], slot, formats.duration(total[name]))
                for name, slot in (("p50", "2"), ("p95", "1"), ("p99", "3"))
            ],
            kind="line",
            unit="ms",
        )

    def tokens_chart(self) -> Chart:
        """Input and output tokens under the filters."""
        buckets, total = self.filtered["buckets"], self.filtered["totals"]
        return Chart(
            id="tokens",
            title=_("Tokens"),
            sentence=_("Tokens over %(window)s: %(input)s in, %(output)s out.")
            % {
                "window": self.words,
                "input": formats.count(total["inputTokens"]),
                "output": formats.count(total["outputTokens"]),
            },
            starts_ms=_starts(buckets),
            bucket_ms=self.filtered["bucketMs"],
            series=[
                Series(_("Input"), [b["inputTokens"] for b in buckets], "2", formats.count(total["inputTokens"])),
                Series(_("Output"), [b["outputTokens"] for b in buckets], "1", formats.count(total["outputTokens"])),
            ],
            unit="tokens",
            stacked=True,
        )

    def tools_chart(self) -> Chart:
        """Tool executions and failures under the filters."""
        buckets, total = self.filtered["buckets"], self.filtered["totals"]
        passed = total["toolCalls"] - total["toolFailures"]
        return Chart(
            id="tools",
            title=_("Tool calls"),
            sentence=_("Tool calls over %(window)s: %(calls)s, of which %(failures)s failed.")
            % {
                "window": self.words,
                "calls": formats.count(total["toolCalls"]),
                "failures": formats.count(total["toolFailures"]),
            },
            starts_ms=_starts(buckets),
            bucket_ms=self.filtered["bucketMs"],
            series=[
                Series(_("Failed"), [b["toolFailures"] for b in buckets], "fail", formats.count(total["toolFailures"])),
                Series(
                    _("Passed"), [b["toolCalls"] - b["toolFailures"] for b in buckets], "none", formats.count(passed)
                ),
            ],
            stacked=True,
            empty=_("No tool was called."),
            drill=self.drill,
        )

    def platforms_chart(self) -> Chart:
        """Root traces by framework label under the filters."""
        return self._counts_chart(
            "platforms",
            _("Platforms"),
            [bucket["byFramework"] for bucket in self.filtered["buckets"]],
            self.filtered["frameworks"],
            {OTHER: _("Other / custom")},
            _("Traces by platform over %(window)s: %(parts)s."),
        )

    def kinds_chart(self) -> Chart:
        """Spans by kind under the filters."""
        return self._counts_chart(
            "kinds",
            _("Spans by kind"),
            [bucket["spansByKind"] for bucket in self.filtered["buckets"]],
            self.filtered["totals"]["spansByKind"],
            {},
            _("Spans by kind over %(window)s: %(parts)s."),
        )

    def traffic_charts(self) -> list[tuple[Chart, str]]:
        """The charts that follow the filters, each with its column class."""
        return [
            (self.platforms_chart(), "c6"),
            (self.latency_chart(), "c6"),
            (self.tokens_chart(), "c4"),
            (self.tools_chart(), "c4"),
            (self.kinds_chart(), "c4"),
        ]

    def _counts_chart(
        self,
        id: str,
        title: str,
        per_bucket: list[dict[str, float]],
        totals: dict[str, float],
        names: dict[str, str],
        sentence: str,
    ) -> Chart:
        named = [{names.get(key, key): value for key, value in bucket.items()} for bucket in per_bucket]
        sums = {names.get(key, key): value for key, value in totals.items()}
        series = top_series(named, sums, note=formats.count)
        parts = ", ".join(f"{one.label} {one.note}" for one in series)
        return Chart(
            id=id,
            title=title,
            sentence=sentence % {"window": self.words, "parts": parts or _("none")},
            starts_ms=_starts(self.filtered["buckets"]),
            bucket_ms=self.filtered["bucketMs"],
            series=series,
            stacked=True,
            drill=self.drill if id == "platforms" else "",
        )

    # --- Lists

    @property
    def drill(self) -> str:
        """The trace list under the traffic filters."""
        agent = next(iter(self.filters.agent_ids(self.project) or []), "") if self.filters.agent else ""
        chosen = {
            "agent": agent,
            "model": self.filters.model,
            "framework": self.filters.framework,
            "tool": self.filters.tool,
            "status": self.filters.status,
        }
        query = urlencode({name: value for name, value in chosen.items() if value})
        return f"{reverse('dashboard:traces')}?{query}" if query else reverse("dashboard:traces")

    def busiest_agents(self) -> list[tuple[str, str, AgentFigures]]:
        """(id, name, figures) of the agents with most traces."""
        figures = analytics.agent_figures(self.project, self.window)
        names = agent_names(self.project, figures)
        ranked = sorted(figures.items(), key=lambda item: (-item[1].traces, item[0]))
        return [(agent_id, names[agent_id], one) for agent_id, one in ranked if agent_id in names and one.traces][
            :AGENTS_SHOWN
        ]

    def top_failing(self) -> list[tuple[str, str, list[Failing]]]:
        """(id, tab label, rows) for what failed, the agents and the tools."""
        patterns = []
        for row in self.failing["patterns"]:
            key = row["patternKey"]
            if key.startswith(TOOL_FAILURE_PREFIX):
                tool = key.removeprefix(TOOL_FAILURE_PREFIX)
                patterns.append((tool, _("Tool failure"), row["count"], {"tool": tool}, "fail"))
            elif key == "agent-trace-error":
                patterns.append((_("Trace error"), _("Operational"), row["count"], {"status": "error"}, "fail"))
            elif key == "empty-agent-response":
                patterns.append((_("Empty response"), _("Operational"), row["count"], {}, "warn"))
            else:
                patterns.append((key, _("Pattern"), row["count"], {}, "warn"))
        agents = [
            # Without a status: an agent's run also fails by a tool or an empty answer, which is no error of the trace.
            (row["name"], _("Agent"), row["count"], {"agent": row["agentId"]}, "fail")
            for row in self.failing["agents"]
        ]
        tools = [(row["tool"], _("Tool"), row["count"], {"tool": row["tool"]}, "fail") for row in self.failing["tools"]]
        return [
            ("failing-all", _("Everything"), self._rows(patterns)),
            ("failing-agents", _("Agents"), self._rows(agents)),
            ("failing-tools", _("Tools"), self._rows(tools)),
        ]

    def _rows(self, items: list[tuple[str, str, int, dict[str, str], str]]) -> list[Failing]:
        most = max((item[2] for item in items), default=0)
        base = reverse("dashboard:traces")
        return [
            Failing(
                name,
                stream,
                count,
                round(count / most * 100, 1),
                f"{base}?{urlencode(query | {'window': self.window.name})}" if query else "",
                verdict,
            )
            for name, stream, count, query, verdict in items
        ]

    def facets(self) -> list[tuple[str, str, list[tuple[str, str]], str]]:
        """(parameter, label, choices, chosen) of the traffic filters; what is chosen is always offered."""
        offered = self.metrics["facets"]
        sources = (
            ("agent", _("Agent"), offered["agents"]),
            ("model", _("Model"), offered["models"]),
            ("framework", _("Platform"), offered["frameworks"]),
            ("tool", _("Tool"), offered["tools"]),
        )
        built = []
        for name, label, values in sources:
            chosen = getattr(self.filters, name) or ""
            choices = [(value, _("Other / custom") if value == OTHER else value) for value in values]
            if chosen and chosen not in values:
                choices.insert(0, (chosen, chosen))
            built.append((name, label, choices, chosen))
        statuses = [("ok", _("OK")), ("error", _("Error"))]
        built.append(("status", _("Status"), statuses, self.filters.status or ""))
        return built


def _starts(points: list[dict[str, Any]]) -> list[int]:
    return [parse_iso_ms(point["ts"]) for point in points]
