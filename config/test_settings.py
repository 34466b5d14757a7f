"""Settings of the test suite: a throw-away home, SQLite in a file or the Postgres of AGENTX_TEST_DB_URL."""

import os
import tempfile

os.environ["AGENTX_HOME"] = _home = tempfile.mkdtemp(prefix="agentx-test-")
os.environ["AGENTX_DB_URL"] = os.environ.get("AGENTX_TEST_DB_URL", "")
for _name in [name for name in os.environ if name.startswith("AGENTX_QUOTA_") or name.endswith("_API_KEY")]:
    del os.environ[_name]

from config.settings import *  # noqa: E402, F403

if not os.environ["AGENTX_DB_URL"]:
    # A file, not memory: the writer thread has a connection of its own.
    DATABASES["default"]["TEST"] = {"NAME": os.path.join(_home, "test.db")}  # noqa: F405
    DATABASES["default"]["CONN_MAX_AGE"] = 0  # noqa: F405
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
# In tests that run inside one transaction the batch is written on the caller's own connection.
INGEST_INLINE = True
# The tests' own edits drop the caches at once; a clock must not add queries to a counted request.
CACHE_SECONDS = 3600.0
