"""Apps, middleware, templates, static files, REST framework."""

from __future__ import annotations

from pathlib import Path

from config import env
from config.version import VERSION

_ROOT = Path(__file__).resolve().parent.parent.parent
# A source checkout has its assets beside the packages; a wheel carries them inside config/_assets.
BASE_DIR = _ROOT if (_ROOT / "templates").is_dir() else Path(__file__).resolve().parent.parent / "_assets"
AGENTX_HOME = Path(env.required_text("AGENTX_HOME")).expanduser()

DEBUG = False
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
APPEND_SLASH = False
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "accounts.User"

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "config.admin.OperatorAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_celery_beat",
    "django_htmx",
    "django_cotton",
    "lucide",
    "chartkick.django",
    "apps.core",
    "apps.projects",
    "apps.accounts",
    "apps.llm",
    "apps.tracing",
    "apps.datasets",
    "apps.scorers",
    "apps.evaluations",
    "apps.monitoring",
    "apps.analytics",
    "apps.operations",
    "apps.dashboard",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "apps.dashboard.middleware.ContentSecurityPolicyMiddleware",
    "apps.dashboard.middleware.ProjectMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "apps.dashboard.context.shell",
            ],
            "builtins": ["django.templatetags.i18n", "apps.dashboard.templatetags.ui"],
        },
    }
]

# T: two questions at least this near (cosine of text-embedding-3-small) are the same one to ask. Case dedupe and
# coverage share it: covered means that the dataset would refuse the question as a duplicate.
CASE_SIMILARITY_THRESHOLD = 0.82

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["apps.projects.api.authentication.ProjectKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["apps.projects.api.authentication.HasProject"],
    "DEFAULT_RENDERER_CLASSES": ["apps.core.api.renderers.WireJSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["apps.core.api.parsers.WireJSONParser"],
    "EXCEPTION_HANDLER": "apps.core.api.errors.exception_handler",
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "apps.core.api.negotiation.AlwaysFirst",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": None,
}

SPECTACULAR_SETTINGS = {
    "TITLE": "AgentX Server API",
    "DESCRIPTION": "Traces, sessions, agents, monitoring, projects and export. Send the project key in `x-api-key`. "
    "Every route under `/monitor` answers under `/agent-monitoring` as well, every one under "
    "`/custom-agent-evaluations` under `/evaluate`.",
    "VERSION": VERSION,
    "SERVE_INCLUDE_SCHEMA": False,
    "PREPROCESSING_HOOKS": ["apps.operations.api.schema.add_doors_and_drop_twins"],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "apps.operations.api.schema.describe_refusals",
    ],
    "ENUM_NAME_OVERRIDES": {
        "ResultStatusEnum": ["scored", "skipped", "failed"],
        "FinalStatusEnum": ["completed", "failed"],
        "RunStatusEnum": ["in_progress", "completed", "failed"],
    },
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}
