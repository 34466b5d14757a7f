"""Operators' pages of the model catalog with its dated prices, and of provider keys (masked)."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin, TabularInline
from unfold.decorators import display
from unfold.widgets import UnfoldAdminPasswordWidget

from apps.core.admin import ReadOnlyAdmin
from apps.core.api.bodies import secret_or_none
from apps.core.api.errors import APIError
from apps.llm.api import bodies
from apps.llm.models import CatalogModel, ModelPrice, ProviderKey
from apps.llm.services import catalog
from apps.llm.services.provider_keys import save_provider_keys


class PriceInline(TabularInline):
    """Prices by date. What holds already stays, as costs were computed with it: a change is a new row."""

    model = ModelPrice
    extra = 0
    can_delete = False
    fields = ["valid_from", "input_per_m", "output_per_m", "cache_read_per_m", "cache_write_per_m"]
    ordering = ["-valid_from"]
    hide_title = True
    verbose_name_plural = _("Prices (USD per million tokens); the first may hold from 1970-01-01 on, for all time")

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        # A model without any price would cost nothing known: a new one starts with one.
        return super().get_formset(request, obj, validate_min=obj is None, **kwargs)

    def get_min_num(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> int:
        return 1 if obj is None else 0

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class CatalogModelForm(forms.ModelForm):
    """A model; its key can be set or cleared here and is never shown."""

    new_api_key = forms.CharField(
        label=_("New API key"),
        required=False,
        strip=True,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text=_("For a custom endpoint. Empty keeps the stored key."),
    )
    clear_api_key = forms.BooleanField(label=_("Forget the stored API key"), required=False)

    class Meta:
        model = CatalogModel
        fields = ["model_id", "provider", "label", "is_default", "base_url"]
        labels = {
            "model_id": _("Model id"),
            "is_default": _("Default judge model"),
            "base_url": _("Address of the endpoint"),
        }
        help_texts = {"model_id": _("The exact text sent to the provider.")}

    def clean(self) -> dict[str, Any]:
        """Hold the form to the rules of the API."""
        data = super().clean() or {}
        if data.get("provider") == CatalogModel.Provider.CUSTOM and not data.get("base_url"):
            self.add_error("base_url", ValidationError(_("A custom model needs the address of its endpoint.")))
        for field, check in (
            ("model_id", lambda text: bodies.model_id({"id": text})),
            ("base_url", lambda text: bodies.base_url(text) if text else text),
            ("new_api_key", lambda text: secret_or_none(text, "API key")),
        ):
            if field not in data:
                continue
            try:
                data[field] = check(data[field])
            except APIError as error:
                self.add_error(field, ValidationError(error.message))
        return data


@admin.register(CatalogModel)
class CatalogModelAdmin(ModelAdmin):
    """The model catalog."""

    form = CatalogModelForm
    list_display = ["model_id", "label", "provider_name", "default", "input_now", "output_now", "origin", "updated_at"]
    list_filter = ["provider", "is_default", "seeded"]
    search_fields = ["model_id", "label"]
    ordering = ["-is_default", "model_id"]
    inlines = [PriceInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[CatalogModel]:
        return super().get_queryset(request).prefetch_related("prices")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        key = ["api_key_masked", "new_api_key", "clear_api_key"] if obj else ["new_api_key"]
        return [
            (None, {"fields": ["model_id", "provider", "label", "is_default"]}),
            (_("Custom endpoint"), {"fields": ["base_url", *key]}),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["model_id", "api_key_masked"] if obj else []

    @display(description=_("Provider"), ordering="provider", label=True)
    def provider_name(self, row: CatalogModel) -> str:
        return row.provider

    @display(description=_("Default"), label={"default": "primary"})
    def default(self, row: CatalogModel) -> tuple[str, Any] | None:
        return ("default", _("Default")) if row.is_default else None

    @display(description=_("Origin"))
    def origin(self, row: CatalogModel) -> Any:
        return _("shipped") if row.seeded else _("added")

    @display(description=_("Input $/M"))
    def input_now(self, row: CatalogModel) -> str:
        price = _price_now(row)
        return f"{price.input_per_m:g}" if price else "–"

    @display(description=_("Output $/M"))
    def output_now(self, row: CatalogModel) -> str:
        price = _price_now(row)
        return f"{price.output_per_m:g}" if price else "–"

    def save_model(self, request: HttpRequest, obj: CatalogModel, form: Any, change: bool) -> None:
        data = form.cleaned_data
        key: Any = data["new_api_key"] or (None if data.get("clear_api_key") else ...)
        catalog.save_row(
            model=obj,
            fields=catalog.ModelFields(
                provider=data["provider"],
                label=data["label"],
                base_url=data["base_url"],
                api_key=key,
                is_default=data["is_default"],
            ),
            request=request,
        )

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        prices = formset.save(commit=False)
        formset.save_m2m()
        for price in prices:
            catalog.add_dated_price(
                model=form.instance,
                rates=catalog.Rates(
                    input_per_m=price.input_per_m,
                    output_per_m=price.output_per_m,
                    cache_read_per_m=price.cache_read_per_m,
                    cache_write_per_m=price.cache_write_per_m,
                ),
                valid_from=price.valid_from,
                request=request,
            )

    def delete_model(self, request: HttpRequest, obj: CatalogModel) -> None:
        catalog.delete_model(model_id=obj.model_id, request=request)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[CatalogModel]) -> None:
        for model in queryset:
            catalog.delete_model(model_id=model.model_id, request=request)

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        listed = [str(_("Model %(name)s with its prices; stored costs stay") % {"name": row}) for row in objs]
        return listed, {str(_("models")): len(listed)}, set(), []


def _price_now(row: CatalogModel) -> ModelPrice | None:
    now = timezone.now()
    begun = [price for price in row.prices.all() if price.valid_from <= now]
    return max(begun, key=lambda price: price.valid_from) if begun else None


@admin.register(ProviderKey)
class ProviderKeyAdmin(ReadOnlyAdmin):
    """Keys saved in Settings: masked; they can be removed here, and are saved in Settings only."""

    list_display = ["provider", "masked", "organization", "created_at"]
    fields = ["provider", "masked", "organization", "created_at"]
    list_filter = ["provider"]
    ordering = ["provider"]
    actions = ["forget"]

    def has_forget_permission(self, request: HttpRequest) -> bool:
        """Removing a key."""
        return bool(request.user.has_perm("llm.delete_providerkey"))

    @admin.action(description=_("Forget: calls use the key of the environment, if any"), permissions=["forget"])
    def forget(self, request: HttpRequest, queryset: QuerySet[ProviderKey]) -> None:
        save_provider_keys(keys={row.provider: None for row in queryset}, request=request)
        self.message_user(request, _("Forgotten."), messages.SUCCESS)
