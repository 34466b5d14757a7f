"""What pages of the operators' site share: read-only pages, and lists that never count millions of rows."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.paginator import InfinitePaginator
from unfold.views import ChangeList

from apps.core.models import Lease
from apps.core.times import from_ms

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


class CountlessChangeList(ChangeList):
    """A list that is only ever ordered by the primary key, whatever the address says."""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[str]:
        return ["-pk"]

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        # Equal numbers keep the page from naming a total that nobody counted.
        self.full_result_count = self.result_count


class CountlessAdmin(ReadOnlyAdmin):
    """A read-only list over a table of any size: pages by primary key, newest first, without totals."""

    paginator = CountlessPaginator
    show_full_result_count = False
    sortable_by = ()
    list_per_page = 50
    list_max_show_all = 0

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return CountlessChangeList


def moment(ms: int) -> str:
    """A time for a table: UTC to the second."""
    return f"{from_ms(ms):%Y-%m-%d %H:%M:%S}"


@admin.register(Lease)
class LeaseAdmin(ReadOnlyAdmin):
    """Who runs which sweep, and until when."""

    list_display = ["name", "holder", "expires_at"]
    ordering = ["name"]
    search_fields = ["name"]
    search_help_text = _("Name of the sweep")
