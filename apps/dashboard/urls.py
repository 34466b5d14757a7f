"""Addresses of the pages. No trailing slashes; what a page shows stands in its query."""

from django.urls import URLPattern, path

from apps.dashboard.views import agents, datasets, guides, overview, sessions, shell, trace, traces
from apps.dashboard.views.settings import about, access, models, monitoring, projects, providers

app_name = "dashboard"

urlpatterns: list[URLPattern] = [
    # A person lands on Overview (source 1:4378-4379); `home` is the same address for those who mean "the first page".
    path("", overview.overview, name="overview"),
    path("", overview.overview, name="home"),
    path("overview/waiting", overview.waiting, name="waiting"),
    path("demo", overview.demo, name="demo"),
    path("demo/progress", overview.demo_state, name="demo_progress"),
    path("sessions", sessions.sessions, name="sessions"),
    path("sessions/<path:session_id>", sessions.session, name="session"),
    path("turns/<str:trace_id>", sessions.turn_tree, name="turn_tree"),
    path("agents", agents.agents, name="agents"),
    path("agents/<str:agent_id>", agents.agent, name="agent"),
    path("datasets", datasets.datasets, name="datasets"),
    path("datasets/new", datasets.new, name="dataset_new"),
    path("datasets/<str:dataset_id>", datasets.dataset, name="dataset"),
    path("datasets/<str:dataset_id>/delete", datasets.remove, name="dataset_delete"),
    path("guides", guides.guide, name="guide"),
    path("guides/<slug:slug>", guides.guide, name="guide_of"),
    path("settings", access.access, name="settings"),
    path("settings/key", access.reveal_key, name="settings_key"),
    path("settings/key/regenerate", access.regenerate, name="settings_regenerate"),
    path("settings/providers", providers.providers, name="settings_providers"),
    path("settings/providers/save", providers.save_key, name="settings_provider_save"),
    path("settings/providers/clear", providers.clear_key, name="settings_provider_clear"),
    path("settings/providers/openrouter-models", providers.openrouter_options, name="settings_openrouter_models"),
    path("settings/platform-model", providers.save_platform_model, name="settings_platform_model"),
    path("settings/models", models.models, name="settings_models"),
    path("settings/models/new", models.new_model, name="settings_model_new"),
    path("settings/models/check", models.check_endpoint, name="settings_model_check"),
    path("settings/models/delete/<path:model_id>", models.remove_model, name="settings_model_delete"),
    path("settings/models/default/<path:model_id>", models.make_default, name="settings_model_default"),
    path("settings/models/edit/<path:model_id>", models.edit_model, name="settings_model"),
    path("settings/monitoring", monitoring.monitoring, name="settings_monitoring"),
    path("settings/projects", projects.projects, name="settings_projects"),
    path("settings/projects/new", projects.new_project, name="project_new"),
    path("settings/projects/<str:uid>/delete", projects.remove_project, name="settings_project_delete"),
    path("settings/audit", about.audit_log, name="settings_audit"),
    path("settings/about", about.about, name="settings_about"),
    path("connect", shell.connect, name="connect"),
    path("disconnect", shell.disconnect, name="disconnect"),
    path("projects/switch", shell.switch_project, name="project_switch"),
    path("preferences", shell.preferences, name="preferences"),
    path("traces", traces.traces, name="traces"),
    path("traces/export.<str:form>", traces.export, name="traces_export"),
    path("traces/<str:trace_id>/peek", traces.peek, name="trace_peek"),
    path("traces/new", traces.new_count, name="traces_new"),
    path("traces/<str:trace_id>", trace.trace, name="trace"),
    path("traces/<str:trace_id>/children", trace.children, name="trace_children"),
    path("traces/<str:trace_id>/raw.json", trace.raw, name="trace_raw"),
    path("traces/<str:trace_id>/spans/<path:key>/field/<str:name>", trace.field, name="trace_field"),
    path("traces/<str:trace_id>/spans/<path:key>", trace.span, name="trace_span"),
    path("palette", shell.palette, name="palette"),
]
