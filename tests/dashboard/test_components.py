"""Every cotton component renders, and says what it should."""

from __future__ import annotations

import pytest
from django.template import Context, engines

from apps.dashboard import jsonview


def html(source: str, **context: object) -> str:
    from django_cotton.compiler_regex import CottonCompiler

    return engines["django"].engine.from_string(CottonCompiler().process(source)).render(Context(context))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('<c-icon name="search" />', "<svg"),
        ('<c-icon name="no-such-icon" />', "<svg"),
        ('<c-glyph v="fail" label="failed" />', 'aria-label="failed"'),
        ('<c-kind kind="llm" />', '<span class="vh">LLM</span>'),
        ('<c-badge v="warn">late</c-badge>', 'data-v="warn">late</span>'),
        ('<c-kpi label="Cost" :value="None" unit="s" />', "–"),
        ('<c-kpi label="Cost" value="8" href="/x" />', 'href="/x"'),
        ('<c-delta :value="-3" unit=" %" good="down" />', 'data-v="pass"'),
        ('<c-delta :value="None" />', "–"),
        (
            '<c-table label="T" pick="1"><c-slot name="head"><th>A</th></c-slot><tr><td>1</td></tr></c-table>',
            "<th>A</th>",
        ),
        ('<c-pager text="1-50 of 99" older="?cursor=x" target="#list" />', 'hx-get="?cursor=x"'),
        ('<c-empty icon="inbox" title="Nothing">why</c-empty>', "<h3>Nothing</h3>"),
        ('<c-banner v="fail" title="No.">x</c-banner>', 'data-v="fail"'),
        ('<c-dialog id="d" title="D">body<c-slot name="footer">f</c-slot></c-dialog>', "<footer>f</footer>"),
        ('<c-menu id="m" label="M">x</c-menu>', "popover"),
        ('<c-toast v="pass">ok</c-toast>', "toast"),
        ('<c-code id="c" label="Code">x &lt; y</c-code>', "x &lt; y"),
        ('<c-json :text="text" label="J" />', '<span class="k">&quot;a&quot;</span>'),
        ('<c-copy text="abc" label="Copy id" />', 'data-text="abc"'),
        ('<c-time ms="0" />', "1970"),
    ],
)
def test_component(source: str, expected: str) -> None:
    assert expected in html(source, text='{"a": 1}')


def test_json_is_escaped_and_bounded() -> None:
    assert "<script>" not in jsonview.render('{"a": "<script>alert(1)</script>"}')
    big = jsonview.render('"' + "x" * 500_000 + '"')
    assert len(big) < 30_000
    assert "more" in big
    deep = jsonview.render("[" * 5_000 + "]" * 5_000)
    assert len(deep) < 30_000
    wide = jsonview.render("[" + ",".join("1" for _ in range(50_000)) + "]")
    assert len(wide) < 200_000
    assert "…" in wide


def test_inlined_media_are_described_not_sent() -> None:
    shown = jsonview.render('{"image": "data:image/png;base64,' + "A" * 8_000_000 + '"}')
    assert len(shown) < 2_000_000 + 30_000


def test_text_that_is_no_json_is_shown_as_text() -> None:
    assert jsonview.render("not <json>") == "not &lt;json&gt;"


def test_the_text_of_shown_json_is_the_json() -> None:
    import json
    import re
    from html import unescape

    value = {"a": [1, 2.5, None, True, 'x, "y"'], "b": {"c": {}, "d": [], "e": {"f": {"g": [[1]]}}}, "h": "ü"}
    shown = jsonview.render(json.dumps(value))
    plain = re.sub(r"<span class=\"c\">.*?</span>|<span class=\"shut\">.*?</span>|<[^>]+>", "", shown)
    assert json.loads(unescape(plain)) == value
