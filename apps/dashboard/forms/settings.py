"""Forms of Settings: projects, keys, providers, models and prices, monitoring defaults."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.core.outbound import OutboundRefused, check_url
from apps.dashboard.forms.base import PageForm, one_line
from apps.llm.models import CatalogModel
from apps.llm.services.catalog import ModelFields, Rates
from apps.llm.services.provider_keys import PROVIDERS

PROVIDER_NAMES = {"openai": "OpenAI", "anthropic": "Anthropic", "gemini": "Gemini", "openrouter": "OpenRouter"}
RESERVED_MODEL_IDS = frozenset({"new", "test-connection", "unpriced"})
_MAX_PRICE = 1e9
_MAX_DAYS = 100_000


class ProjectForm(PageForm):
    """A new project."""

    name = forms.CharField(
        label=_("Name"),
        max_length=200,
        validators=[one_line],
        help_text=_("A project has its own key, traces, agents and settings."),
    )


class ConfirmForm(PageForm):
    """Typing a name before something that cannot be undone."""

    confirm = forms.CharField(max_length=200)

    def __init__(self, *args: Any, expected: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.expected = expected
        self.fields["confirm"].label = _("Type %(name)s to go on") % {"name": expected}

    def clean_confirm(self) -> str:
        """The text must be the name, letter for letter."""
        text = self.cleaned_data["confirm"].strip()
        if text != self.expected.strip():
            raise forms.ValidationError(_("This is not the name. Nothing was changed."))
        return text


class ProviderKeyForm(PageForm):
    """One provider's key. The field is never filled with the stored one."""

    provider = forms.ChoiceField(choices=[(name, PROVIDER_NAMES[name]) for name in PROVIDERS], widget=forms.HiddenInput)
    key = forms.CharField(
        label=_("API key"),
        max_length=1000,
        widget=forms.PasswordInput(attrs={"data-mono": "", "spellcheck": "false", "autocomplete": "new-password"}),
    )

    def clean_key(self) -> str:
        """One line of plain characters."""
        text = self.cleaned_data["key"].strip()
        if not text.isascii() or " " in text or not text.isprintable():
            raise forms.ValidationError(_("A key is one line of plain characters without spaces."))
        return text


class PlatformModelForm(PageForm):
    """The model of the server's own LLM work."""

    model = forms.CharField(
        label=_("Platform model"),
        max_length=200,
        validators=[one_line],
        widget=forms.TextInput(attrs={"list": "platform-models", "spellcheck": "false", "data-mono": ""}),
        help_text=_("Used by the server's own work when nothing else is named. Type to search the catalog."),
    )


class MonitoringForm(PageForm):
    """The project's monitoring defaults that people change."""

    topics_enabled = forms.BooleanField(
        label=_("Topics"), required=False, widget=forms.CheckboxInput(attrs={"role": "switch"})
    )
    topics_percent = forms.FloatField(
        label=_("Sample rate"),
        min_value=0,
        max_value=100,
        widget=forms.NumberInput(attrs={"step": "any", "inputmode": "decimal"}),
        help_text=_("Percent of traces that are classified; each costs one model call."),
        error_messages={
            "invalid": _("Enter a number from 0 to 100."),
            "min_value": _("Enter a number from 0 to 100."),
            "max_value": _("Enter a number from 0 to 100."),
        },
    )
    retention_days = forms.IntegerField(
        label=_("Retention, days"),
        min_value=0,
        max_value=_MAX_DAYS,
        widget=forms.NumberInput(attrs={"inputmode": "numeric"}),
        help_text=_("Traces older than this are deleted with their spans. 0 keeps everything."),
        error_messages={"invalid": _("Enter a whole number of days."), "min_value": _("Enter 0 or more.")},
    )

    def changes(self) -> dict[str, Any]:
        """The wire keys of the monitoring defaults."""
        data = self.cleaned_data
        return {
            "topicsEnabled": data["topics_enabled"],
            "topicsSampleRate": data["topics_percent"] / 100,
            "retentionDays": data["retention_days"],
        }


def _price(label: Any, *, required: bool, hint: Any = "") -> forms.FloatField:
    return forms.FloatField(
        label=label,
        required=required,
        min_value=0,
        max_value=_MAX_PRICE,
        help_text=hint,
        widget=forms.NumberInput(attrs={"step": "any", "inputmode": "decimal"}),
        error_messages={
            "invalid": _("Enter a price in USD, such as 1.25."),
            "min_value": _("A price cannot be below 0."),
            "max_value": _("This is more than any model costs. Prices are per million tokens."),
        },
    )


class ModelForm(PageForm):
    """A row of the catalog with the prices that are to hold."""

    model_id = forms.CharField(
        label=_("Model id"),
        max_length=200,
        validators=[one_line],
        help_text=_("Exactly as sent to the provider and as spans name it."),
        widget=forms.TextInput(attrs={"data-mono": "", "spellcheck": "false"}),
    )
    label = forms.CharField(label=_("Name"), max_length=200, validators=[one_line])
    provider = forms.ChoiceField(
        label=_("Provider"),
        choices=[
            ("openai", "OpenAI"),
            ("anthropic", "Anthropic"),
            ("gemini", "Gemini"),
            ("custom", _("Custom endpoint")),
        ],
    )
    base_url = forms.CharField(
        label=_("Base URL"),
        required=False,
        max_length=500,
        help_text=_("Of a custom endpoint that speaks the OpenAI protocol."),
        widget=forms.URLInput(attrs={"placeholder": "http://localhost:8000/v1"}),
    )
    api_key = forms.CharField(
        label=_("API key"),
        required=False,
        max_length=1000,
        widget=forms.PasswordInput(attrs={"data-mono": "", "autocomplete": "new-password"}),
        help_text=_("Of a custom endpoint. Left empty, the stored key stays."),
    )
    input_price = _price(_("Input"), required=True)
    output_price = _price(_("Output"), required=True)
    cache_read_price = _price(_("Cache read"), required=False, hint=_("Empty: the input price."))
    cache_write_price = _price(_("Cache write"), required=False, hint=_("Empty: the input price."))
    effective_from = forms.DateField(
        label=_("Prices hold from"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        error_messages={"invalid": _("Enter a date such as 2026-11-28.")},
    )
    reprice_days = forms.IntegerField(
        label=_("Re-price the last days"),
        required=False,
        min_value=1,
        max_value=3650,
        help_text=_("Empty: costs that are stored stay as they are. Spans are priced at the prices of their own time."),
        widget=forms.NumberInput(attrs={"inputmode": "numeric"}),
        error_messages={
            "invalid": _("Enter a whole number of days."),
            "min_value": _("Enter 1 or more."),
            "max_value": _("Enter 3650 or less."),
        },
    )
    is_default = forms.BooleanField(
        label=_("Default model of judges"), required=False, widget=forms.CheckboxInput(attrs={"role": "switch"})
    )

    def __init__(self, *args: Any, existing: CatalogModel | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.existing = existing
        if existing is not None:
            self.fields["model_id"].disabled = True
            self.fields["effective_from"].help_text = _("Empty: from now on. What ran before keeps its price.")
            if existing.api_key_masked:
                self.fields["api_key"].help_text = _("Stored: %(masked)s. Left empty, it stays.") % {
                    "masked": existing.api_key_masked
                }
        else:
            self.fields["effective_from"].help_text = _("Empty: for all time, past traces included.")

    def clean_model_id(self) -> str:
        """Not one of the words that stand in addresses."""
        text = self.cleaned_data["model_id"].strip()
        if text in RESERVED_MODEL_IDS or text.startswith("/") or text.endswith("/"):
            raise forms.ValidationError(_("A model cannot be called this."))
        return text

    def clean_api_key(self) -> str:
        """One line of plain characters."""
        text = self.cleaned_data["api_key"].strip()
        if text and (not text.isascii() or " " in text or not text.isprintable()):
            raise forms.ValidationError(_("A key is one line of plain characters without spaces."))
        return text

    def clean(self) -> dict[str, Any]:
        """A custom model needs an address that the server may call."""
        data = super().clean() or {}
        url = data.get("base_url", "").strip()
        if data.get("provider") == CatalogModel.Provider.CUSTOM:
            if not url:
                self.add_error("base_url", _("A custom endpoint needs its address."))
            else:
                try:
                    check_url(url)
                except OutboundRefused as error:
                    self.add_error("base_url", _("This address cannot be used: %(reason)s") % {"reason": error})
        return data

    def model_fields(self) -> ModelFields:
        """What the catalog service takes; the stored key and address stay unless they are named."""
        data = self.cleaned_data
        custom = data["provider"] == CatalogModel.Provider.CUSTOM
        said: dict[str, Any] = {
            "provider": data["provider"],
            "label": data["label"].strip(),
            "is_default": data["is_default"],
        }
        if custom:
            said["base_url"] = data["base_url"].strip()
        if data["api_key"]:
            said["api_key"] = data["api_key"]
        return ModelFields(**said)

    def rates(self) -> Rates:
        """The four prices, USD per million tokens."""
        data = self.cleaned_data
        return Rates(
            input_per_m=data["input_price"],
            output_per_m=data["output_price"],
            cache_read_per_m=data["cache_read_price"],
            cache_write_per_m=data["cache_write_price"],
        )

    def valid_from(self) -> datetime | None:
        """The beginning (UTC) of the day from which the prices hold; None when no day was given."""
        day = self.cleaned_data["effective_from"]
        return datetime(day.year, day.month, day.day, tzinfo=UTC) if day else None
