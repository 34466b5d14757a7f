"""What the schema editor cannot say: the full-text tables, and Postgres' partitions, links and collations."""

from django.db import migrations

SQLITE = [
    "CREATE VIRTUAL TABLE tracing_spansearch USING fts5(body, content='', detail=none, columnsize=0, tokenize='ascii')",
    # Merging later costs searches little and saves a third of the indexing.
    "INSERT INTO tracing_spansearch (tracing_spansearch, rank) VALUES ('automerge', 8)",
]

POSTGRES = [
    'ALTER TABLE tracing_span ALTER COLUMN id TYPE varchar(21) COLLATE "C"',
    'ALTER TABLE tracing_span ALTER COLUMN root_id TYPE varchar(21) COLLATE "C"',
    """
    CREATE TABLE tracing_spanlink (
        id varchar(21) COLLATE "C" NOT NULL PRIMARY KEY,
        project_id bigint NOT NULL,
        span_id text,
        parent_span_id text,
        body tsvector
    )
    """,
    """
    INSERT INTO tracing_spanlink (id, project_id, span_id, parent_span_id)
    SELECT id, project_id, span_id, parent_span_id FROM tracing_span
    WHERE span_id IS NOT NULL OR parent_span_id IS NOT NULL
    """,
    "CREATE UNIQUE INDEX spanlink_identity ON tracing_spanlink (project_id, span_id) WHERE span_id IS NOT NULL",
    "CREATE INDEX spanlink_children ON tracing_spanlink (project_id, parent_span_id) WHERE parent_span_id IS NOT NULL",
    """
    CREATE VIEW tracing_spansearch AS
    SELECT id AS span_id, project_id, body FROM tracing_spanlink WHERE body IS NOT NULL
    """,
    "CREATE INDEX spansearch_words ON tracing_spanlink USING gin (body) WHERE body IS NOT NULL",
]

# Only an empty table becomes a partitioned one; a plain table with rows is kept and works like before.
PARTITION = [
    "CREATE TABLE tracing_span_new (LIKE tracing_span INCLUDING DEFAULTS) PARTITION BY RANGE (id)",
    "DROP TABLE tracing_span",
    "ALTER TABLE tracing_span_new RENAME TO tracing_span",
    "ALTER TABLE tracing_span ADD CONSTRAINT tracing_span_pkey PRIMARY KEY (id)",
    "CREATE INDEX span_roots ON tracing_span (project_id, id) WHERE parent_span_id IS NULL",
    "CREATE INDEX span_session ON tracing_span (project_id, session_id)",
    "CREATE INDEX span_tree ON tracing_span (root_id) WHERE parent_span_id IS NOT NULL",
    "CREATE TABLE tracing_span_default PARTITION OF tracing_span DEFAULT",
]

PAYLOADS = ("error", "input", "output", "tool_calls", "metadata", "performance_summary")


def forwards(apps, schema_editor):
    """Create the tables of this database's kind."""
    with schema_editor.connection.cursor() as cursor:
        if schema_editor.connection.vendor == "sqlite":
            for statement in SQLITE:
                cursor.execute(statement)
            return
        for statement in POSTGRES:
            cursor.execute(statement)
        cursor.execute("SELECT NOT EXISTS (SELECT 1 FROM tracing_span)")
        if not cursor.fetchone()[0]:
            return
        cursor.execute("SELECT 'lz4' = ANY(enumvals) FROM pg_settings WHERE name = 'default_toast_compression'")
        row = cursor.fetchone()
        for statement in PARTITION:
            cursor.execute(statement)
        if row and row[0]:
            for column in PAYLOADS:
                for table in ("tracing_span", "tracing_span_default"):
                    cursor.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET COMPRESSION lz4")


class Migration(migrations.Migration):
    dependencies = [("tracing", "0001_initial")]

    operations = [migrations.RunPython(forwards, elidable=False)]
