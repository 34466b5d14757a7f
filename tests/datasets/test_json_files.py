"""Datasets as files (DATA-044)."""

from __future__ import annotations

import json

import pytest

from apps.datasets import wire
from apps.datasets.models import Dataset
from apps.datasets.services.datasets import import_dataset
from apps.datasets.services.json_files import JSONRefused, dump, read


def test_round_trip(make, project):
    """A downloaded file gives an equal copy."""
    document = make("😀?", judgeModel="m", ci={"enabled": True, "thresholds": {"rating": 6}})
    data = dump(Dataset.objects.get())
    assert json.loads(data) == document
    [row] = read(data)
    copy = wire.document(import_dataset(project=project, row=row))
    assert {**copy, "_id": 0, "createdAt": 0} == {**document, "_id": 0, "createdAt": 0}


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "a"}',
        '\ufeff[{"name": "a"}]',
        '{"datasets": [{"name": "a"}]}',
        '{"name": "a"}\n\n{"name": "b"}\r\n',
    ],
)
def test_shapes(text):
    """A document, a list, the list route's answer, lines of the export."""
    assert [row["name"] for row in read(text.encode())] in (["a"], ["a", "b"])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b" ", "empty"),
        (b"query,expected\n", "Line 1"),
        (b'{"name": "a"}\n{broken', "Line 2"),
        (b'{"name": "a"}\n5', "Line 2"),
        (b"[]", "no datasets"),
        (b"[5]", "no datasets"),
        (b"5", "no datasets"),
        (b'[{"name": "a"}, {"name": " "}]', "Dataset 2"),
        (b"x" * (11 * 1024 * 1024), "11 MB; at most 10 MB"),
        (json.dumps([{"name": "n"}] * 201).encode(), "201 datasets"),
        (b"\xff\xfe", "Line 1"),
    ],
)
def test_refusals(data, said):
    """The text names the place."""
    with pytest.raises(JSONRefused) as caught:
        read(data)
    assert said in caught.value.message
