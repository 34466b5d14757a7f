"""What all forms share: controls that wear the design's classes, and texts of one line."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def one_line(value: str) -> None:
    """Refuse control characters, line breaks among them."""
    if _CONTROL.search(value):
        raise ValidationError(_("Remove line breaks and control characters."))


class PageForm(forms.Form):
    """A form whose text controls are `.input`; each error stands below its field."""

    required_css_class = "required"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.error_messages.setdefault("required", _("Fill this in."))
            if field.required:
                field.error_messages["required"] = _("Fill this in.")
            if not isinstance(field.widget, forms.CheckboxInput):
                field.widget.attrs.setdefault("class", "input")
                field.widget.attrs.setdefault("autocomplete", "off")
