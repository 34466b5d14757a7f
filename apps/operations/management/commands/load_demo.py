"""`manage.py load_demo`: fill the demo project; what `agentx-server --demo` runs."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.operations.demo import load_demo


class Command(BaseCommand):
    """Load the demo project; running it again adds nothing."""

    help = "Load the demo project: a month of traffic of a dozen agents. Running it again adds nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--live-minutes", type=float, default=0, help="Afterwards keep storing fresh traces for so many minutes."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        progress = load_demo(live_minutes=options["live_minutes"])
        if progress.state == "failed":
            raise CommandError(progress.error or "the demo could not be loaded")
        self.stdout.write(f"Demo project {progress.project_id}: {progress.spans} spans")
