"""Look and menu of the operators' site (django-unfold)."""

from __future__ import annotations

from typing import Any

from django.templatetags.static import static
from django.urls import reverse_lazy
from django.utils.translation import gettext_lazy as _


def _entry(title: Any, icon: str, name: str) -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": reverse_lazy(f"admin:{name}")}


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": _("AgentX operators"),
    "SITE_HEADER": _("AgentX"),
    "SITE_SUBHEADER": _("Operators"),
    "SITE_URL": "/",
    "SITE_ICON": lambda request: static("img/mark.svg"),
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("img/mark.svg")}],
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_BACK_BUTTON": True,
    "DASHBOARD_CALLBACK": "apps.operations.admin.dashboard",
    "BORDER_RADIUS": "6px",
    # The accent of static/css/tokens.css as a scale.
    "COLORS": {
        "primary": {
            "50": "oklch(97.5% .012 318)",
            "100": "oklch(95.2% .017 318)",
            "200": "oklch(90% .035 322)",
            "300": "oklch(82% .06 325)",
            "400": "oklch(73% .09 330)",
            "500": "oklch(60% .125 332)",
            "600": "oklch(48% .13 333)",
            "700": "oklch(43% .13 334)",
            "800": "oklch(37% .12 332)",
            "900": "oklch(31% .09 330)",
            "950": "oklch(22% .06 328)",
        },
    },
    "SIDEBAR": {
        "show_search": True,
        "show_all_applications": False,
        "navigation": [
            {"items": [_entry(_("Dashboard"), "dashboard", "index")]},
            {
                "title": _("Tenancy"),
                "separator": True,
                "items": [
                    _entry(_("Organizations"), "domain", "projects_organization_changelist"),
                    _entry(_("Projects"), "folder", "projects_project_changelist"),
                    _entry(_("Project keys"), "key", "projects_apikey_changelist"),
                    _entry(_("Quota usage"), "speed", "projects_quotausage_changelist"),
                ],
            },
            {
                "title": _("Telemetry"),
                "separator": True,
                "items": [
                    _entry(_("Agents"), "smart_toy", "tracing_agent_changelist"),
                    _entry(_("Spans"), "account_tree", "tracing_span_changelist"),
                    _entry(_("Sessions"), "forum", "tracing_session_changelist"),
                ],
            },
            {
                "title": _("Models"),
                "separator": True,
                "items": [
                    _entry(_("Catalog and prices"), "sell", "llm_catalogmodel_changelist"),
                    _entry(_("Provider keys"), "vpn_key", "llm_providerkey_changelist"),
                ],
            },
            {
                "title": _("Operation"),
                "separator": True,
                "items": [
                    _entry(_("Audit trail"), "receipt_long", "projects_auditevent_changelist"),
                    _entry(_("Periodic tasks"), "schedule", "django_celery_beat_periodictask_changelist"),
                    _entry(_("Leases"), "lock_clock", "core_lease_changelist"),
                    _entry(_("Operators"), "group", "accounts_user_changelist"),
                ],
            },
        ],
    },
}
