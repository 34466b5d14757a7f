"""Projects: list, create (each with a key of its own), delete by typing the name."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from apps.core.api.errors import APIError
from apps.dashboard.current import DashboardRequest, remember
from apps.dashboard.forms.settings import ConfirmForm, ProjectForm
from apps.projects.models import Project
from apps.projects.services.projects import create_project, delete_project


@require_safe
def projects(request: DashboardRequest) -> HttpResponse:
    """Every project of this server."""
    rows = list(
        Project.objects.filter(deleting=False).select_related("organization").order_by("-is_default", "name", "pk")
    )
    return render(request, "dashboard/settings/projects.html", {"projects": rows, "form": ProjectForm()})


@require_http_methods(["GET", "HEAD", "POST"])
def new_project(request: DashboardRequest) -> HttpResponse:
    """Create a project and move this browser to it."""
    form = ProjectForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        project, _key = create_project(name=form.cleaned_data["name"].strip(), request=request)
        messages.success(request, _("Project %(name)s created, with a key of its own.") % {"name": project.name})
        response = redirect("dashboard:home")
        remember(response, project.uid, secure=bool(settings.SESSION_COOKIE_SECURE))
        return response
    status = 400 if form.is_bound else 200
    return render(request, "dashboard/settings/project_new.html", {"form": form}, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def remove_project(request: DashboardRequest, uid: str) -> HttpResponse:
    """Say what goes with a project, then delete it once its name was typed."""
    project = Project.objects.filter(uid=uid, deleting=False).first()
    if project is None:
        raise Http404
    form = ConfirmForm(request.POST or None, expected=project.name)
    if request.method == "POST" and form.is_valid():
        try:
            delete_project(uid=project.uid, request=request)
        except APIError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, _("Project %(name)s is gone.") % {"name": project.name})
            response = redirect("dashboard:settings_projects")
            if project.pk == request.project.pk:
                response.delete_cookie("agentx_project")
            return response
    status = 400 if form.is_bound else 200
    return render(request, "dashboard/settings/project_delete.html", {"doomed": project, "form": form}, status=status)
