"""The monitoring settings of one agent."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.dashboard.forms.base import PageForm
from apps.tracing.models import AgentProfile

CHANNELS_MAX = 50
_CHANNEL_LENGTH = 200


def _switch(label: Any, hint: Any) -> forms.BooleanField:
    return forms.BooleanField(
        label=label, help_text=hint, required=False, widget=forms.CheckboxInput(attrs={"role": "switch"})
    )


class ProfileForm(PageForm):
    """The profile fields that people change; the rest round-trips through the API."""

    enabled = _switch(
        _("Monitoring"), _("Off: none of this agent's traces is checked, whatever the trace itself asks for.")
    )
    failure_detection_enabled = _switch(
        _("Failure detection"), _("Patterns that point at failures. Trace errors and failed tools count regardless.")
    )
    info_detection_enabled = _switch(_("Info detection"), _("Patterns that note something good or neutral."))
    topics_enabled = _switch(_("Topics"), _("Lets the project's topic classification see this agent."))
    channels = forms.CharField(
        label=_("Channels"),
        required=False,
        max_length=CHANNELS_MAX * (_CHANNEL_LENGTH + 1),
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("Where notifications about this agent go, one a line."),
    )

    @classmethod
    def of(cls, profile: AgentProfile | None, data: Any = None) -> ProfileForm:
        """The form filled from the profile, or from the defaults of an agent that has none."""
        source = profile or AgentProfile()
        names = ("enabled", "failure_detection_enabled", "info_detection_enabled", "topics_enabled")
        initial: dict[str, Any] = {name: getattr(source, name) for name in names}
        initial["channels"] = "\n".join(source.channels or [])
        return cls(data, initial=initial)

    def clean_channels(self) -> list[str]:
        """One channel a line, without empty lines and repeats."""
        lines = [line.strip() for line in self.cleaned_data["channels"].splitlines()]
        channels = list(dict.fromkeys(line for line in lines if line))
        if len(channels) > CHANNELS_MAX:
            raise forms.ValidationError(_("At most %(n)d channels.") % {"n": CHANNELS_MAX})
        if any(len(line) > _CHANNEL_LENGTH for line in channels):
            raise forms.ValidationError(_("A channel has at most %(n)d characters.") % {"n": _CHANNEL_LENGTH})
        return channels
