"""Newest first and "the run before" are questions about ids."""

from django.db import migrations

from apps.core.collation import ids_in_byte_order


class Migration(migrations.Migration):
    dependencies = [("evaluations", "0002_results_without_question")]

    operations = [
        ids_in_byte_order(
            "evaluations_run",
            "evaluations_result",
            "evaluations_gateverdict",
            "evaluations_pairwisecomparison",
            "evaluations_cirun",
        )
    ]
