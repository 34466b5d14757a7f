"""Fixtures shared by the whole suite."""

from __future__ import annotations

import pytest


@pytest.fixture
def project(db):
    """The default project of a fresh install, with its key in `project.key`."""
    from apps.projects.services.projects import ensure_default_project

    project, key = ensure_default_project()
    project.key = key
    return project
