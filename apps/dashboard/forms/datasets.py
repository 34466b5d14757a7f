"""The whole of a dataset as one form: its cases, grading, CI settings and names are saved together as one version."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from apps.dashboard.forms.base import one_line
from apps.dashboard.forms.grading import GradingForm, JSONListField, NameForm, switch, unix_lines
from apps.datasets.grading import ci_settings
from apps.datasets.questions import query_of

MAX_REPETITIONS = 10
# Field: (key of `ci.thresholds`, highest value).
THRESHOLDS = {
    "threshold_rating": ("rating", 10),
    "threshold_vector": ("vectorSimilarity", 1),
    "threshold_jaccard": ("jaccardSimilarity", 1),
    "threshold_bleu": ("bleuScore", 1),
    "threshold_rouge": ("rougeScore", 1),
}


class NewDatasetForm(NameForm):
    """A dataset to begin with: its cases come next."""


def threshold(label: Any, high: int, hint: Any = "") -> forms.FloatField:
    """The least that a measure has to reach, empty for none."""
    return forms.FloatField(
        label=label,
        required=False,
        min_value=0,
        max_value=high,
        help_text=hint,
        widget=forms.NumberInput(attrs={"step": "any"}),
    )


class DatasetForm(GradingForm):
    """Fields of a dataset's page. `questions` is the list of cases as JSON, kept by the case editor."""

    name = forms.CharField(label=_("Name"), max_length=300, validators=[one_line])
    description = forms.CharField(
        label=_("Description"), required=False, max_length=10_000, widget=forms.Textarea(attrs={"rows": 3})
    )
    number_of_requests = forms.IntegerField(
        label=_("Repetitions"),
        min_value=1,
        max_value=MAX_REPETITIONS,
        help_text=_("How often a run asks each case, 1 to 10. More repetitions tell chance from change and cost more."),
    )
    questions = JSONListField(label=_("Cases"))
    ci_enabled = switch(_("CI runs"), _("Lets a pipeline start runs of this dataset and hold its merge on the result."))
    ci_pass_rate = forms.FloatField(
        label=_("Pass rate, at least"),
        required=False,
        min_value=0,
        max_value=1,
        widget=forms.NumberInput(attrs={"step": "any"}),
        help_text=_("Share of cases that have to pass, from 0 to 1. Empty: 1."),
    )
    ci_fail_fast = switch(_("Fail fast"), _("A run ends with its first failed case."))
    ci_expose = switch(_("Expose test inputs"), _("Off: questions are not part of what a pipeline gets back."))
    ci_webhook = forms.CharField(
        label=_("Webhook URL"),
        required=False,
        max_length=2000,
        widget=forms.TextInput(attrs={"spellcheck": "false", "data-mono": "", "inputmode": "url"}),
        help_text=_("Gets a signed POST when a CI run ends."),
    )
    threshold_rating = threshold(_("Judge rating, at least"), 10, _("From 0 to 10."))
    threshold_vector = threshold(_("Vector similarity, at least"), 1)
    threshold_jaccard = threshold(_("Jaccard similarity, at least"), 1)
    threshold_bleu = threshold(_("BLEU score, at least"), 1)
    threshold_rouge = threshold(_("ROUGE score, at least"), 1)
    base_version = forms.IntegerField(required=False, widget=forms.HiddenInput)
    applied = forms.CharField(required=False, max_length=21, widget=forms.HiddenInput)

    def __init__(self, data: Any = None, *, found: dict[str, Any], base: int | None, applied: str = "") -> None:
        """`found` is the content of the dataset, or of the version that fills the form."""
        settings = ci_settings(found.get("ci"))
        stored = (found.get("ci") or {}).get("thresholds") or {}
        initial: dict[str, Any] = {
            **GradingForm.initial_of(found),
            "name": found.get("name"),
            "description": found.get("description") or "",
            "number_of_requests": found.get("numberOfRequests") or 1,
            "questions": found.get("questions") or [],
            "ci_enabled": settings.enabled,
            "ci_pass_rate": (found.get("ci") or {}).get("passRateThreshold"),
            "ci_fail_fast": settings.fail_fast,
            "ci_expose": settings.expose_test_inputs,
            "ci_webhook": settings.webhook_url or "",
            "base_version": base,
            "applied": applied,
            **{name: stored.get(key) for name, (key, _high) in THRESHOLDS.items()},
        }
        super().__init__(data, initial=initial)
        self._found = found
        repetitions = self.fields["number_of_requests"]
        if isinstance(repetitions, forms.IntegerField) and initial["number_of_requests"] > MAX_REPETITIONS:
            # The API takes any count; a page must be able to save what is stored.
            repetitions.max_value = None
            repetitions.validators = []

    def clean_description(self) -> str:
        """Plain line ends."""
        return unix_lines(self.cleaned_data["description"])

    def clean_questions(self) -> list[Any]:
        """Refuses cases that lost their query; blank ones that came through the API may stay."""
        found: list[Any] = self.cleaned_data["questions"]
        blank = [n for n, case in enumerate(found, 1) if not (isinstance(case, dict) and query_of(case).strip())]
        known = sum(1 for case in self._found.get("questions") or [] if not query_of(case).strip())
        if len(blank) > known:
            shown = ", ".join(map(str, blank[:10]))
            raise forms.ValidationError(
                ngettext(
                    "Case %(n)s has no query. Fill it in or delete the case.",
                    "Cases %(n)s have no query. Fill them in or delete the cases.",
                    len(blank),
                )
                % {"n": shown}
            )
        return found

    def body(self) -> dict[str, Any]:
        """The wire body of the edit."""
        values = self.cleaned_data
        found: dict[str, Any] = {
            "name": values["name"],
            "description": values["description"] or None,
            "numberOfRequests": values["number_of_requests"],
            "questions": values["questions"],
            **self.criteria(),
            **self.measures(self._found),
            "ci": self._ci(),
        }
        if values["applied"]:
            # No field shows it: what the version had comes back with it.
            found["sovereigntyIndex"] = self._found.get("sovereigntyIndex")
        return found

    def _ci(self) -> dict[str, Any] | None:
        """What differs from a dataset that says nothing, or was said before."""
        values = self.cleaned_data
        before = self._found.get("ci") or {}
        defaults = {"enabled": False, "failFast": False, "exposeTestInputs": True}
        names = {"enabled": "ci_enabled", "failFast": "ci_fail_fast", "exposeTestInputs": "ci_expose"}
        found: dict[str, Any] = {
            key: values[name] for key, name in names.items() if key in before or values[name] != defaults[key]
        }
        if values["ci_pass_rate"] is not None:
            found["passRateThreshold"] = values["ci_pass_rate"]
        if values["ci_webhook"]:
            found["webhookUrl"] = values["ci_webhook"]
        limits = {key: values[name] for name, (key, _high) in THRESHOLDS.items() if values[name] is not None}
        if limits or "thresholds" in before:
            found["thresholds"] = limits
        return found or None
