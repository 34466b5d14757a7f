"""The operators' site: every page opens, what must not be edited cannot be, and no secret is ever on a page."""

from __future__ import annotations

import json

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User
from apps.core import leases
from apps.core.times import now_ms
from apps.llm.models import CatalogModel, ModelPrice, ProviderKey
from apps.llm.pricing import price_of
from apps.llm.services.catalog import seed_catalog
from apps.llm.services.provider_keys import provider_key, save_provider_keys
from apps.projects.models import ApiKey, AuditEvent, Project, QuotaUsage
from apps.projects.services import audit
from apps.projects.services.keys import project_for_key
from apps.projects.services.projects import create_project
from apps.tracing.ingest.pipeline import store_spans
from apps.tracing.ingest.records import SpanIn
from apps.tracing.models import Span
from apps.tracing.rollups.fold import settle

PASSWORD = "correct horse battery staple"
PROVIDER_SECRET = "sk-provider-0123456789abcdef"
MODEL_SECRET = "sk-model-0123456789abcdef0123"
READ_ONLY = [
    "projects_apikey",
    "projects_quotausage",
    "projects_auditevent",
    "tracing_agent",
    "tracing_span",
    "tracing_session",
    "llm_providerkey",
    "core_lease",
]
EDITABLE = [
    "projects_organization",
    "projects_project",
    "llm_catalogmodel",
    "accounts_user",
    "auth_group",
    "django_celery_beat_periodictask",
    "django_celery_beat_intervalschedule",
    "django_celery_beat_crontabschedule",
]


@pytest.fixture
def operator(project) -> Client:
    """A signed-in operator of an instance that has something of everything."""
    seed_catalog()
    User.objects.create_superuser("ops@example.com", PASSWORD)
    save_provider_keys(keys={"openai": PROVIDER_SECRET})
    audit.record(
        action="scorer.create", project=project, target_type="scorer", target_id="s1", summary_fields=["script"]
    )
    QuotaUsage.objects.create(project=project, day="2026-11-29", kind="traces", used=3)
    leases.acquire("session-sweep")
    store_spans(
        project,
        [
            SpanIn(
                name="checkout",
                span_id="root",
                session_id="s-1",
                model="gpt-4o-mini",
                input_tokens=10,
                input=b'{"q": "<script>alert(1)</script>"}',
            ),
            SpanIn(name="failing tool", span_id="child", parent_span_id="root", session_id="s-1", error="boom"),
        ],
    )
    settle()
    client = Client()
    assert client.login(username="ops@example.com", password=PASSWORD)
    return client


def changelist(name: str) -> str:
    return reverse(f"admin:{name}_changelist")


def test_the_site_is_behind_a_sign_in(project):
    answer = Client().get("/admin/")
    assert answer.status_code == 302
    assert answer["Location"].startswith("/admin/login/")
    assert Client().get("/admin/login/").status_code == 200


def test_someone_who_is_no_operator_stays_out(project):
    User.objects.create_user("person@example.com", PASSWORD)
    client = Client()
    client.login(username="person@example.com", password=PASSWORD)
    assert client.get("/admin/").status_code == 302


def test_signing_in(operator):
    client = Client()
    answer = client.post("/admin/login/?next=/admin/", {"username": "OPS@example.com", "password": PASSWORD})
    assert (answer.status_code, answer["Location"]) == (302, "/admin/")


def test_the_front_page(operator, project, django_assert_max_num_queries):
    with django_assert_max_num_queries(18):
        page = operator.get("/admin/").content.decode()
    for text in ("Traces, 24 h", "Catalog and prices", "scorer.create", "Latest control-plane actions"):
        assert text in page
    assert project.key not in page


@pytest.mark.parametrize("name", READ_ONLY + EDITABLE)
def test_every_list_opens(operator, name):
    answer = operator.get(changelist(name))
    assert answer.status_code == 200
    assert operator.get(changelist(name), {"q": "a"}).status_code == 200


def test_every_row_opens(operator):
    opened = 0
    for model, model_admin in admin.site._registry.items():
        row = model._default_manager.first()
        if row is None:
            continue
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_change"
        answer = operator.get(reverse(name, args=[row.pk]))
        assert answer.status_code == 200, (model, model_admin)
        opened += 1
    assert opened >= 10


@pytest.mark.parametrize("name", READ_ONLY)
def test_read_only_pages_refuse_every_write(operator, name):
    model = next(m for m in admin.site._registry if f"{m._meta.app_label}_{m._meta.model_name}" == name)
    row = model._default_manager.first()
    assert row is not None
    before = json.dumps(list(model._default_manager.values()), default=str)
    assert operator.get(reverse(f"admin:{name}_add")).status_code == 403
    assert operator.post(reverse(f"admin:{name}_add"), {"name": "x"}).status_code == 403
    assert operator.post(reverse(f"admin:{name}_change", args=[row.pk]), {"name": "x"}).status_code == 403
    assert operator.post(reverse(f"admin:{name}_delete", args=[row.pk]), {"post": "yes"}).status_code == 403
    operator.post(changelist(name), {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"})
    assert json.dumps(list(model._default_manager.values()), default=str) == before


def test_no_page_holds_a_secret(operator, project):
    _, other_key = create_project(name="B")
    CatalogModel.objects.filter(model_id="gpt-5").update(api_key_masked="sk-m…0123")
    pages = [operator.get("/admin/").content.decode()]
    for model in admin.site._registry:
        label = f"{model._meta.app_label}_{model._meta.model_name}"
        pages.append(operator.get(changelist(label)).content.decode())
        for row in list(model._default_manager.all()[:25]):
            pages.append(operator.get(reverse(f"admin:{label}_change", args=[row.pk])).content.decode())
    stored = [
        *ApiKey.objects.values_list("key_encrypted", "key_hash"),
        *ProviderKey.objects.values_list("key_encrypted"),
    ]
    secrets = {project.key, other_key, PROVIDER_SECRET, *(text for row in stored for text in row)}
    for page in pages:
        for secret in secrets:
            assert secret not in page


def test_a_key_is_revoked_after_a_question(operator, project):
    key = ApiKey.objects.get()
    url = reverse("admin:projects_apikey_revoke_one", args=[key.pk])
    page = operator.get(url)
    assert "will get 401 from now on" in page.content.decode()
    assert project_for_key(project.key) is not None
    assert operator.post(url).status_code == 302
    assert project_for_key(project.key) is None
    event = AuditEvent.objects.get(action="apikey.revoke")
    assert (event.actor_type, event.actor_email) == ("user", "ops@example.com")


def test_keys_are_revoked_in_bulk(operator, project):
    _, key = create_project(name="B")
    row = ApiKey.objects.get(project__name="B")
    operator.post(changelist("projects_apikey"), {"action": "revoke", "_selected_action": [row.pk]})
    assert project_for_key(key) is None
    assert project_for_key(project.key) is not None


def test_a_project_is_made_renamed_and_deleted_through_the_services(operator, project):
    assert operator.post(reverse("admin:projects_project_add"), {"name": "Shop"}).status_code == 302
    made = Project.objects.get(name="Shop")
    assert made.api_keys.count() == 1
    assert made.organization_id == project.organization_id
    change = reverse("admin:projects_project_change", args=[made.pk])
    inlines = {
        f"{prefix}-{name}": "0"
        for prefix in ("api_keys", "monitoring_defaults")
        for name in ("TOTAL_FORMS", "INITIAL_FORMS", "MIN_NUM_FORMS", "MAX_NUM_FORMS")
    }
    assert operator.post(change, {"name": "Store", "is_default": "on", **inlines}).status_code == 302
    made.refresh_from_db()
    assert (made.name, made.is_default) == ("Store", False)
    delete = reverse("admin:projects_project_delete", args=[made.pk])
    assert "all its traces" in operator.get(delete).content.decode()
    assert operator.post(delete, {"post": "yes"}).status_code == 302
    assert not Project.objects.filter(pk=made.pk).exists()
    actions = AuditEvent.objects.filter(project_uid=made.uid).values_list("action", flat=True)
    assert sorted(actions) == ["project.create", "project.delete", "project.update"]


def test_the_default_project_cannot_be_deleted(operator, project):
    delete = reverse("admin:projects_project_delete", args=[project.pk])
    assert operator.post(delete, {"post": "yes"}).status_code == 403
    assert Project.objects.filter(pk=project.pk).exists()


def _model_form(model: CatalogModel | None, **values: str) -> dict[str, str]:
    form = {
        "model_id": model.model_id if model else "",
        "provider": model.provider if model else "",
        "label": model.label if model else "",
        "base_url": model.base_url if model else "",
        "prices-TOTAL_FORMS": "0",
        "prices-INITIAL_FORMS": "0",
        "prices-MIN_NUM_FORMS": "0",
        "prices-MAX_NUM_FORMS": "1000",
    }
    return form | values


def _first_price(**values: str) -> dict[str, str]:
    return {
        "prices-TOTAL_FORMS": "1",
        "prices-0-id": "",
        "prices-0-valid_from_0": "1970-01-01",
        "prices-0-valid_from_1": "00:00:00",
        "prices-0-input_per_m": "1",
        "prices-0-output_per_m": "2",
    } | values


def test_a_price_is_added_and_the_old_one_stays(operator):
    model = CatalogModel.objects.get(model_id="gpt-4o-mini")
    url = reverse("admin:llm_catalogmodel_change", args=[model.pk])
    form = _model_form(
        model,
        **{
            "prices-TOTAL_FORMS": "1",
            "prices-0-id": "",
            "prices-0-model": str(model.pk),
            "prices-0-valid_from_0": "2026-06-01",
            "prices-0-valid_from_1": "00:00:00",
            "prices-0-input_per_m": "0.5",
            "prices-0-output_per_m": "1.5",
        },
    )
    answer = operator.post(url, form)
    assert answer.status_code == 302, answer.context["errors"]
    assert list(model.prices.values_list("input_per_m", flat=True)) == [0.15, 0.5]
    assert price_of("gpt-4o-mini", now_ms()).input == 0.5
    assert price_of("gpt-4o-mini", 1_000).input == 0.15
    summaries = AuditEvent.objects.filter(target_id="gpt-4o-mini").values_list("summary", flat=True)
    assert any("pricePerMInputTokens" in summary and "effectiveFrom" in summary for summary in summaries)
    # A row of history is not a form.
    first = model.prices.first()
    operator.post(
        url,
        _model_form(
            model,
            **{
                "prices-TOTAL_FORMS": "1",
                "prices-INITIAL_FORMS": "1",
                "prices-0-id": str(first.pk),
                "prices-0-model": str(model.pk),
                "prices-0-input_per_m": "99",
                "prices-0-DELETE": "on",
            },
        ),
    )
    assert ModelPrice.objects.get(pk=first.pk).input_per_m == 0.15


def test_a_model_is_made_with_a_key_that_is_never_shown_again(operator):
    form = _model_form(
        None,
        model_id="local/llama",
        provider="custom",
        label="Llama",
        base_url="http://127.0.0.1:9/v1",
        new_api_key=MODEL_SECRET,
        is_default="on",
        **_first_price(),
    )
    answer = operator.post(reverse("admin:llm_catalogmodel_add"), form)
    assert answer.status_code == 302, answer.context["errors"]
    model = CatalogModel.objects.get(model_id="local/llama")
    assert model.is_default
    assert price_of("local/llama", 5).output == 2.0
    assert not CatalogModel.objects.get(model_id="gpt-5.6-luna").is_default
    page = operator.get(reverse("admin:llm_catalogmodel_change", args=[model.pk])).content.decode()
    assert model.api_key_masked in page
    assert MODEL_SECRET not in page
    assert MODEL_SECRET not in json.dumps(list(AuditEvent.objects.values()), default=str)
    # An empty field keeps the key, the box forgets it.
    url = reverse("admin:llm_catalogmodel_change", args=[model.pk])
    operator.post(url, _model_form(model, label="Llama 3"))
    model.refresh_from_db()
    assert (model.label, bool(model.api_key_encrypted), model.is_default) == ("Llama 3", True, False)
    operator.post(url, _model_form(model, clear_api_key="on"))
    model.refresh_from_db()
    assert (model.api_key_encrypted, model.api_key_masked) == ("", "")


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"provider": "custom"}, "needs the address of its endpoint"),
        ({"provider": "custom", "base_url": "ftp://127.0.0.1/v1"}, "must start with http"),
        ({"model_id": "unpriced"}, "id is not a valid model id"),
        ({"new_api_key": "two words"}, "API key must be one line"),
        ({"prices-TOTAL_FORMS": "0"}, "submit at least 1 form"),
    ],
)
def test_forms_hold_to_the_rules_of_the_api(operator, values, complaint):
    before = CatalogModel.objects.count()
    form = _model_form(None, model_id="x", provider="openai", label="X", **_first_price()) | values
    answer = operator.post(reverse("admin:llm_catalogmodel_add"), form)
    assert answer.status_code == 200
    assert complaint in answer.content.decode()
    assert CatalogModel.objects.count() == before


def test_provider_keys_can_be_forgotten(operator):
    row = ProviderKey.objects.get()
    operator.post(changelist("llm_providerkey"), {"action": "forget", "_selected_action": [row.pk]})
    assert provider_key("openai") is None


def test_spans_are_listed_without_counting_and_without_their_payloads(operator, django_assert_max_num_queries):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(
        connection,
    ) as queries:
        page = operator.get(changelist("tracing_span"), {"since": "24h", "row": "trace"}).content.decode()
    assert "checkout" in page
    assert "failing tool" not in page
    on_spans = [query["sql"] for query in queries if "tracing_span" in query["sql"]]
    assert len(on_spans) == 1
    assert "COUNT(" not in on_spans[0]
    assert '"metadata"' not in on_spans[0]
    assert len(queries) <= 10


@pytest.mark.parametrize(
    "query",
    [
        {"since": "1h"},
        {"since": "nonsense"},
        {"row": "span"},
        {"kind": "tool"},
        {"status__exact": "1"},
        {"traffic__exact": "0"},
        {"p": "3"},
        {"project__id__exact": "1"},
    ],
)
def test_every_filter_of_spans_answers(operator, query):
    assert operator.get(changelist("tracing_span"), query).status_code == 200


def test_spans_are_found_by_exact_ids(operator):
    root = Span.objects.get(span_id="root")
    page = operator.get(changelist("tracing_span"), {"q": root.id}).content.decode()
    assert "checkout" in page
    assert "failing tool" in page
    by_session = operator.get(changelist("tracing_span"), {"q": "s-1"}).content.decode()
    assert "failing tool" in by_session
    assert "checkout" not in operator.get(changelist("tracing_span"), {"q": "check"}).content.decode()


def test_payloads_are_shown_as_text(operator):
    root = Span.objects.get(span_id="root")
    page = operator.get(reverse("admin:tracing_span_change", args=[root.pk])).content.decode()
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert(1)" not in page
