"""Ids in the order of their bytes on Postgres, whatever the language of the cluster.

An id begins with its time, so `ORDER BY id` is the order of creation, but only when characters compare as bytes. A
cluster made with `en_US.UTF-8` compares text as a dictionary does. SQLite compares bytes anyway.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations


def ids_in_byte_order(*tables: str) -> migrations.RunPython:
    """A migration operation that gives the `id` column of tables the collation "C" on Postgres.

    Foreign keys that point to them need no change: a column's own collation wins over the default one.
    """

    def forwards(apps: Any, schema_editor: Any) -> None:
        if schema_editor.connection.vendor != "postgresql":
            return
        for table in tables:
            name = schema_editor.quote_name(table)
            schema_editor.execute(f'ALTER TABLE {name} ALTER COLUMN id TYPE varchar(21) COLLATE "C"')

    return migrations.RunPython(forwards, migrations.RunPython.noop)
