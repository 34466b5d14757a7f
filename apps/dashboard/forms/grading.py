"""Fields that a dataset's own grading and a judge scorer share: criteria, judge, similarity metrics, code scorers."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.dashboard.forms.base import PageForm, one_line
from apps.llm.selectors import catalog_rows

METRICS = {
    "vector_similarity": "vectorSimilarity",
    "jaccard_similarity": "jaccardSimilarity",
    "bleu_score": "bleuScore",
    "rouge_score": "rougeScore",
}
CRITERIA = {
    "acceptance_criteria": "acceptanceCriteria",
    "rejection_criteria": "rejectionCriteria",
    "evaluation_criteria": "evaluationCriteria",
}
_TEXT_LIMIT = 100_000
MAX_CODE_SCORERS = 50


def switch(label: Any, hint: Any = "") -> forms.BooleanField:
    """An on/off field shown as a switch."""
    return forms.BooleanField(
        label=label, help_text=hint, required=False, widget=forms.CheckboxInput(attrs={"role": "switch"})
    )


def text(label: Any, hint: Any = "", *, rows: int = 3, mono: bool = False) -> forms.CharField:
    """An optional text of several lines, kept as typed."""
    attrs: dict[str, Any] = {"rows": rows}
    if mono:
        attrs |= {"data-mono": "", "spellcheck": "false"}
    return forms.CharField(
        label=label,
        help_text=hint,
        required=False,
        max_length=_TEXT_LIMIT,
        strip=False,
        widget=forms.Textarea(attrs=attrs),
    )


def unix_lines(value: str) -> str:
    """Browsers send CRLF; stored texts have plain line ends, so that saving unchanged text changes nothing."""
    return value.replace("\r\n", "\n")


class JSONListField(forms.CharField):
    """A JSON list that a script keeps in a hidden control."""

    widget = forms.Textarea

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            required=False, strip=False, widget=forms.Textarea(attrs={"hidden": True, "aria-hidden": "true"}), **kwargs
        )

    def prepare_value(self, value: Any) -> Any:
        """Stored lists as JSON text; what was posted stays as it came."""
        return value if isinstance(value, str) else json.dumps(value or [], ensure_ascii=False)

    def clean(self, value: Any) -> Any:
        """The list; refuses what is none."""
        if not str(value or "").strip():
            return []
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            raise forms.ValidationError(
                _("The edits of the page could not be read. Reload it and try again.")
            ) from None
        if not isinstance(found, list):
            raise forms.ValidationError(_("The edits of the page could not be read. Reload it and try again."))
        return found


class GradingForm(PageForm):
    """Criteria, judge prompt and model, metrics and code scorers of whatever grades a run."""

    acceptance_criteria = text(_("Acceptance criteria"), _("What a good answer does."))
    rejection_criteria = text(_("Rejection criteria"), _("What makes an answer fail, whatever else is right."))
    evaluation_criteria = text(_("Additional guidance"), _("How to weigh what the criteria leave open."))
    judge_prompt = text(_("Judge prompt"), rows=8, mono=True)
    judge_model = forms.ChoiceField(label=_("Judge model"), required=False)
    vector_similarity = switch(_("Vector similarity"), _("Cosine of the embeddings of answer and expected results."))
    jaccard_similarity = switch(_("Jaccard similarity"), _("Words in common over all words of both."))
    bleu_score = switch(_("BLEU score"), _("Sentence BLEU, from 0 to 1."))
    rouge_score = switch(_("ROUGE score"), _("ROUGE-L, the longest common sequence of words, from 0 to 1."))
    code_scorers = JSONListField(label=_("Code scorers"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rows = catalog_rows()
        choices = [("", str(_("Project default")))] + [(row.model.model_id, row.model.label) for row in rows]
        named = self.initial.get("judge_model") or ""
        if named and all(named != value for value, _label in choices):
            choices.append((named, named))
        field = self.fields["judge_model"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices

    @staticmethod
    def initial_of(found: dict[str, Any]) -> dict[str, Any]:
        """Values of the fields out of the wire keys of a grading config."""
        values: dict[str, Any] = {name: found.get(key) or "" for name, key in CRITERIA.items()}
        values["judge_prompt"] = found.get("judgePrompt") or ""
        values["judge_model"] = found.get("judgeModel") or ""
        for name, key in METRICS.items():
            metric = found.get(key)
            values[name] = isinstance(metric, dict) and metric.get("enabled") is True
        values["code_scorers"] = found.get("codeScorers") or []
        return values

    def clean_code_scorers(self) -> list[dict[str, Any]]:
        """Each with a body; nameless ones are named by the service."""
        found = [item for item in self.cleaned_data["code_scorers"] if isinstance(item, dict)]
        if len(found) > MAX_CODE_SCORERS:
            raise forms.ValidationError(_("At most %(n)d code scorers.") % {"n": MAX_CODE_SCORERS})
        for number, item in enumerate(found, 1):
            if not str(item.get("code") or "").strip():
                name = str(item.get("name") or "").strip() or str(number)
                raise forms.ValidationError(
                    _("Code scorer “%(name)s” has no code. Write some or remove it.") % {"name": name}
                )
        return found

    def criteria(self) -> dict[str, Any]:
        """The criteria, prompt and model as wire keys; null for an empty one."""
        names = {**CRITERIA, "judge_prompt": "judgePrompt", "judge_model": "judgeModel"}
        return {key: unix_lines(self.cleaned_data[name]) or None for name, key in names.items()}

    def measures(self, stored: dict[str, Any]) -> dict[str, Any]:
        """Metrics and code scorers as wire keys. Further keys of a stored metric stay while it is on."""
        found: dict[str, Any] = {}
        for name, key in METRICS.items():
            kept = stored.get(key) if isinstance(stored.get(key), dict) else {}
            found[key] = {**(kept or {}), "enabled": True} if self.cleaned_data[name] else None
        found["codeScorers"] = self.cleaned_data["code_scorers"] or None
        return found


class NameForm(PageForm):
    """A name and a description."""

    name = forms.CharField(label=_("Name"), max_length=300, validators=[one_line])
    description = forms.CharField(
        label=_("Description"), required=False, max_length=10_000, widget=forms.Textarea(attrs={"rows": 2})
    )

    def clean_description(self) -> str:
        """Plain line ends."""
        return unix_lines(self.cleaned_data["description"])
