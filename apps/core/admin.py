"""What pages of the operators' site share: read-only pages, and lists that never count millions of rows."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.paginator import InfinitePaginator

from apps.core.models import Lease

# Beyond so many rows a list is to be narrowed by a filter; an OFFSET that far is a scan.
LARGEST_LIST = 10_000


class CountlessPaginator(InfinitePaginator):
    """Previous and next without COUNT(*)."""

    @cached_property
    def count(self) -> int:
        return LARGEST_LIST


class ReadOnlyAdmin(ModelAdmin):
    """Rows can be listed and opened, nothing else."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class CountlessAdmin(ReadOnlyAdmin):
    """A read-only list over a table of any size: pages by primary key, newest first, without totals."""

    paginator = CountlessPaginator
    show_full_result_count = False
    list_per_page = 50
    list_max_show_all = 0


@admin.register(Lease)
class LeaseAdmin(ReadOnlyAdmin):
    """Who runs which sweep, and until when."""

    list_display = ["name", "holder", "expires_at"]
    ordering = ["name"]
    search_fields = ["name"]
    search_help_text = _("Name of the sweep")
