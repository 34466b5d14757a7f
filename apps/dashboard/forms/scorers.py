"""A judge scorer as one form: its rubric, and how dataset runs use it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.dashboard.forms.base import one_line
from apps.dashboard.forms.datasets import MAX_REPETITIONS, THRESHOLDS
from apps.dashboard.forms.datasets import threshold as threshold_field
from apps.dashboard.forms.grading import GradingForm, NameForm, switch, unix_lines

_MAX_WEIGHT = 1_000_000


class ScorerForm(GradingForm):
    """Fields of the judge scorer editor. With `builtin` only what may change of the built-in judge is taken."""

    name = forms.CharField(label=_("Name"), max_length=300, validators=[one_line])
    description = forms.CharField(
        label=_("Description"), required=False, max_length=10_000, widget=forms.Textarea(attrs={"rows": 2})
    )
    tool_context = forms.ChoiceField(
        label=_("Tool context"),
        required=False,
        choices=[
            ("none", _("None: question and answer only")),
            ("simple", _("Simple: the steps of the trace")),
            ("detailed", _("Detailed: steps and tool definitions")),
        ],
        help_text=_("What the judge sees of the linked trace."),
    )
    requires_expected = switch(
        _("Needs a reference answer"),
        _("Cases without expected results are skipped, and live traffic cannot be scored."),
    )
    number_of_requests = forms.IntegerField(
        label=_("Repetitions"), required=False, min_value=1, max_value=MAX_REPETITIONS, help_text=_("1 to 10.")
    )
    is_default = switch(_("Default for runs"), _("Grades runs that name no scorer; only one scorer is the default."))
    threshold_rating = threshold_field(_("Judge rating, at least"), 10, _("From 0 to 10."))
    threshold_vector = threshold_field(_("Vector similarity, at least"), 1)
    threshold_jaccard = threshold_field(_("Jaccard similarity, at least"), 1)
    threshold_bleu = threshold_field(_("BLEU score, at least"), 1)
    threshold_rouge = threshold_field(_("ROUGE score, at least"), 1)
    base_version = forms.IntegerField(required=False, widget=forms.HiddenInput)
    applied = forms.CharField(required=False, max_length=21, widget=forms.HiddenInput)

    def __init__(
        self,
        data: Any = None,
        *,
        found: dict[str, Any],
        base: int | None = None,
        applied: str = "",
        builtin: bool = False,
    ) -> None:
        """`found` holds name, description, judge and offline of the scorer or of the version that fills the form."""
        judge, offline = found.get("judge") or {}, found.get("offline") or {}
        limits = offline.get("thresholds") or {}
        initial: dict[str, Any] = {
            **GradingForm.initial_of({**judge, **offline}),
            "name": found.get("name"),
            "description": found.get("description") or "",
            "tool_context": judge.get("toolContext") or "simple",
            "requires_expected": judge.get("requiresExpected") is True,
            "number_of_requests": offline.get("numberOfRequests") or 1,
            "is_default": offline.get("isDefault") is True,
            "base_version": base,
            "applied": applied,
            **{name: limits.get(key) for name, (key, _high) in THRESHOLDS.items()},
        }
        super().__init__(data, initial=initial)
        self._offline = offline
        self._builtin = builtin
        if builtin:
            self.fields["name"].required = False
        repetitions = self.fields["number_of_requests"]
        if isinstance(repetitions, forms.IntegerField) and initial["number_of_requests"] > MAX_REPETITIONS:
            repetitions.max_value = None
            repetitions.validators = []

    def body(self) -> dict[str, Any]:
        """The wire body of the edit."""
        values = self.cleaned_data
        if self._builtin:
            return {"judge": self.criteria()}
        limits = {key: values[name] for name, (key, _high) in THRESHOLDS.items() if values[name] is not None}
        offline: dict[str, Any] = {
            "numberOfRequests": values["number_of_requests"] or 1,
            "isDefault": values["is_default"],
            "thresholds": limits,
            **self.measures(self._offline),
        }
        if values["applied"]:
            # No field shows it: what the version had comes back with it.
            offline["sovereigntyIndex"] = self._offline.get("sovereigntyIndex")
        return {
            "name": values["name"],
            "description": unix_lines(values["description"]) or None,
            "judge": self.judge(),
            "offline": offline,
        }

    def judge(self) -> dict[str, Any]:
        """The rubric as wire keys."""
        return {
            **self.criteria(),
            "toolContext": self.cleaned_data["tool_context"] or "simple",
            "requiresExpected": self.cleaned_data["requires_expected"],
        }


class GroupForm(NameForm):
    """A scorer group: which scorers, how much each counts, and which of them must pass."""

    def __init__(self, data: Any, *, rows: list[dict[str, Any]], initial: dict[str, Any] | None = None) -> None:
        """`rows`: {kind, refId, name, weight, gate, chosen} of everything that can be a member."""
        super().__init__(data, initial=initial)
        self.rows = rows
        if data is not None:
            chosen = set(data.getlist("member"))
            for row in rows:
                row["chosen"] = row["refId"] in chosen
                row["weight"] = data.get(f"weight-{row['refId']}", "")
                row["gate"] = f"gate-{row['refId']}" in data

    def clean(self) -> dict[str, Any]:
        """At least one member, each with a weight that is a number."""
        values: dict[str, Any] = super().clean() or {}
        values["members"] = [self._member(row) for row in self.rows if row["chosen"]]
        if not values["members"]:
            raise forms.ValidationError(_("Choose at least one scorer."))
        return values

    def _member(self, row: dict[str, Any]) -> dict[str, Any]:
        try:
            weight = float(str(row["weight"]).strip() or 1)
        except ValueError:
            weight = -1
        if not 0 <= weight <= _MAX_WEIGHT:
            raise forms.ValidationError(_("The weight of %(name)s must be a number of at least 0.") % row)
        return {"kind": row["kind"], "refId": row["refId"], "weight": weight, "gate": row["gate"]}
