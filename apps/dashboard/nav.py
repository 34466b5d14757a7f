"""The sidebar. An entry shows as soon as its page exists: names that do not resolve are left out."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import NoReverseMatch, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class Entry:
    """One link: `page` is the url name in the dashboard namespace, `key` the second key after `g`."""

    page: str
    label: str | Promise
    icon: str
    key: str = ""
    children: tuple[str, ...] = ()


@dataclass(frozen=True)
class Link:
    """An entry with its address."""

    label: str | Promise
    icon: str
    key: str
    url: str
    current: bool


# (group label or "", entries); source 1:8588-8620 gives the order.
SECTIONS: tuple[tuple[str | Promise, tuple[Entry, ...]], ...] = (
    ("", (Entry("overview", _("Overview"), "house", "o"),)),
    (
        _("Observe"),
        (
            Entry("traces", _("Live Traces"), "list", "t", ("trace",)),
            Entry("sessions", _("Sessions"), "message-square", "s", ("session",)),
        ),
    ),
    (
        "",
        (
            Entry("monitor", _("Monitor"), "activity", "m"),
            Entry("review", _("Review"), "eye", "r"),
            Entry(
                "scorers",
                _("Scorers"),
                "scale",
                "c",
                ("scorer", "scorer_new", "scorer_version", "scorer_group", "scorer_group_new"),
            ),
        ),
    ),
    (_("Evaluate"), (Entry("runs", _("Runs"), "flask-conical", "e", ("run", "compare", "versions")),)),
    (_("Automations"), (Entry("gates", _("CI Gates"), "shield-check"),)),
    (
        _("Manage"),
        (
            Entry(
                "datasets",
                _("Datasets"),
                "database",
                "d",
                ("dataset", "dataset_new", "dataset_version", "dataset_import"),
            ),
            Entry("prompts", _("Prompts"), "file-text"),
            Entry("tools", _("Tools & MCPs"), "wrench"),
            Entry("rules", _("Rules"), "list-filter"),
            Entry("agents", _("Agents"), "bot", "a", ("agent",)),
        ),
    ),
)
FOOT: tuple[Entry, ...] = (
    Entry("guide", _("Guide"), "book-open", "h"),
    Entry("settings", _("Settings"), "settings", ",", ()),
)


def _link(entry: Entry, current: str) -> Link | None:
    try:
        url = reverse(f"dashboard:{entry.page}")
    except NoReverseMatch:
        return None
    here = current == entry.page or current.startswith(f"{entry.page}_") or current in entry.children
    return Link(entry.label, entry.icon, entry.key, url, here)


def sections(current: str) -> list[tuple[str | Promise, list[Link]]]:
    """The groups of the sidebar that have at least one page; `current` is the url name of the page shown."""
    built = [(label, [link for entry in entries if (link := _link(entry, current))]) for label, entries in SECTIONS]
    return [(label, links) for label, links in built if links]


def foot(current: str) -> list[Link]:
    """The links at the sidebar's foot."""
    return [link for entry in FOOT if (link := _link(entry, current))]
