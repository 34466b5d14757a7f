"""Django as WSGI; the ASGI router in config/asgi.py runs it in a bounded thread pool."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()
