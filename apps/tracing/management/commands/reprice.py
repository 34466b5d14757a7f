"""`manage.py reprice --since 2026-11-01 [--until 2026-12-01] [--project UID]`: price recorded spans anew."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.core.times import now_ms, parse_iso_ms
from apps.projects.models import Project
from apps.tracing.services.repricing import reprice


class Command(BaseCommand):
    """See the module."""

    help = "Price the spans of a range of time anew at the catalog's prices; aggregates follow."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--since", required=True, help="ISO date or time (UTC unless it says otherwise).")
        parser.add_argument("--until", help="ISO date or time; default: now.")
        parser.add_argument("--project", help="Only this project (its _id).")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            since_ms = parse_iso_ms(options["since"])
            until_ms = parse_iso_ms(options["until"]) if options["until"] else now_ms() + 1
        except ValueError as error:
            raise CommandError(f"not an ISO date or time: {error}") from None
        project = None
        if options["project"]:
            project = Project.objects.filter(uid=options["project"], deleting=False).first()
            if project is None:
                raise CommandError("no such project")
        result = reprice(since_ms=since_ms, until_ms=until_ms, project=project)
        self.stdout.write(f"{result.seen} spans looked at, {result.changed} costs changed")
