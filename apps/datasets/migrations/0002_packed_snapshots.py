"""Snapshots are stored compressed."""

from django.db import migrations

import apps.datasets.fields


def pack(apps_then, schema_editor):
    """Copy every snapshot over, a few at a time."""
    versions = apps_then.get_model("datasets", "DatasetVersion")
    for row in versions.objects.only("pk", "plain").iterator(chunk_size=20):
        versions.objects.filter(pk=row.pk).update(snapshot=row.plain)


class Migration(migrations.Migration):
    dependencies = [
        ("datasets", "0001_initial"),
    ]

    operations = [
        migrations.RenameField("datasetversion", "snapshot", "plain"),
        migrations.AddField("datasetversion", "snapshot", apps.datasets.fields.PackedJSONField(null=True)),
        migrations.RunPython(pack, migrations.RunPython.noop, elidable=True),
        migrations.RemoveField("datasetversion", "plain"),
        migrations.AlterField("datasetversion", "snapshot", apps.datasets.fields.PackedJSONField()),
    ]
