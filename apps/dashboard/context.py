"""The context processor of the shell. Everything is computed only when a template asks for it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from apps.dashboard import nav
from apps.projects.models import Project
from config.version import VERSION

THEMES = ("light", "dark")
DENSITIES = ("compact", "roomy")
_SWITCHER_LIMIT = 50


class Shell:
    """What base.html shows around a page."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self.version = VERSION if VERSION == "dev" else f"v{VERSION}"

    def _cookie(self, name: str, allowed: tuple[str, ...]) -> str:
        value = self._request.COOKIES.get(name, "")
        return value if value in allowed else ""

    @property
    def theme(self) -> str:
        """`light`, `dark` or "" for the system's choice."""
        return self._cookie("agentx_theme", THEMES)

    @property
    def density(self) -> str:
        """`compact`, `roomy` or "" for the normal row height."""
        return self._cookie("agentx_density", DENSITIES)

    @property
    def sidebar(self) -> str:
        """`rail` when the sidebar is folded."""
        return self._cookie("agentx_sidebar", ("rail",))

    @property
    def keys_off(self) -> bool:
        """Whether this person switched the single-key shortcuts off."""
        return self._cookie("agentx_keys", ("off",)) == "off"

    @property
    def project(self) -> Project | None:
        """The project of this page, None on the connect page."""
        return getattr(self._request, "project", None)

    @cached_property
    def projects(self) -> list[Project]:
        """The projects of the switcher, by name."""
        return list(
            Project.objects.filter(deleting=False)
            .select_related("organization")
            .order_by("name", "id")[:_SWITCHER_LIMIT]
        )

    @cached_property
    def page(self) -> str:
        """The url name of the page shown."""
        match = self._request.resolver_match
        return match.url_name or "" if match else ""

    @cached_property
    def sections(self) -> list[Any]:
        """Sidebar groups."""
        return nav.sections(self.page)

    @cached_property
    def foot(self) -> list[nav.Link]:
        """Links at the sidebar's foot."""
        return nav.foot(self.page)

    @property
    def links(self) -> list[nav.Link]:
        """Every page of the sidebar, for the palette and the keyboard."""
        return [link for _, links in self.sections for link in links] + self.foot

    @cached_property
    def base_url(self) -> str:
        """Address clients send to: the public URL when one is set, else the address this page was asked at."""
        origin = settings.AGENTX_PUBLIC_URL or f"{self._request.scheme}://{self._request.get_host()}"
        return f"{origin}/api/v1"

    @property
    def path(self) -> str:
        """This page's address with its query, for forms that come back to it."""
        return self._request.get_full_path()


def shell(request: HttpRequest) -> dict[str, Shell]:
    """`ui` in every template."""
    return {"ui": Shell(request)}
