"""The page in headless Chromium: no error, no request, nothing wider than the screen.

The page gets one more script, which tells a frame around it what the browser has seen. The frame
has the width of a screen, as a window of Chromium cannot be as narrow as a phone.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kraftwire.spark.report import write
from tests.spark.report.folders import SECOND, START, quorum, two_days, written

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

HOSTILE = "</script><script>broken=1</script><img src='http://127.0.0.1:9/x' onerror=broken=1>"

# Before everything else on the page, so that nothing escapes it.
_FIRST = """<script>
const seen = {errors: [], requests: []};
addEventListener("error", e => seen.errors.push(String(e.message || e.target.src)), true);
addEventListener("unhandledrejection", e => seen.errors.push(String(e.reason)));
addEventListener("securitypolicyviolation", e => seen.errors.push(e.blockedURI));
for (const level of ["error", "warn"]) {
  const say = console[level];
  console[level] = (...words) => { seen.errors.push(words.join(" ")); say(...words); };
}
</script>"""

_LAST = """<script>
function plots(root) {
  const found = [...root.querySelectorAll("svg")];
  for (const each of root.querySelectorAll("*")) {
    if (each.shadowRoot) found.push(...plots(each.shadowRoot));
  }
  return found;
}
function note() {
  if (document.body.dataset.ready !== "yes") { setTimeout(note, 50); return; }
  seen.requests = performance.getEntriesByType("resource").map(e => e.name);
  seen.width = [innerWidth, document.documentElement.scrollWidth];
  seen.wide = [...document.querySelectorAll("*")].filter(
    e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".wide")
  ).map(e => e.outerHTML.slice(0, 90)).slice(0, 9);
  seen.plots = plots(document).filter(e => e.getBoundingClientRect().height > 20).length;
  seen.paper = getComputedStyle(document.body).backgroundColor;
  const ticks = timeTicks(Bokeh.documents[0].get_model_by_id(
    document.getElementById("interval").dataset.range), 3);
  seen.ticks = ticks.map((each, index) => tickText(index, ticks));
  seen.broken = "broken" in window;
  const place = document.getElementById("interval");
  const range = Bokeh.documents[0].get_model_by_id(place.dataset.range);
  seen.whole = place.textContent;
  range.setv({start: 1795206010000, end: 1795206012000});
  seen.chosen = place.textContent;
  document.getElementById("all").click();
  seen.again = place.textContent;
  parent.postMessage(JSON.stringify(seen), "*");
}
addEventListener("load", () => setTimeout(note, 500));
</script>"""


_AROUND = """<!DOCTYPE html><pre id="seen"></pre>
<script>
addEventListener("message", e => document.getElementById("seen").textContent = e.data)
</script>
<iframe src="{name}" style="border: 0; width: {width}px; height: 3000px"></iframe>"""


def _look(page: Path, width: int, folder: Path, *flags: str) -> dict[str, Any]:
    """What the browser has seen of a page."""
    text = page.read_text()
    watched, around = folder / "watched.html", folder / "around.html"
    head, title, rest = text.partition("<title>")
    body, end, nothing = rest.rpartition("</body>")
    watched.write_text("".join((head, _FIRST, title, body, _LAST, end, nothing)))
    around.write_text(_AROUND.format(name=watched.name, width=width))
    done = subprocess.run(
        [
            str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--hide-scrollbars",
            f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=20000",
            "--window-size=1300,3100", *flags, "--dump-dom", around.as_uri(),
        ],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    found = re.search(r'<pre id="seen">(.+?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    seen: dict[str, Any] = json.loads(html.unescape(found.group(1)))
    return seen


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report in which every name is hostile."""
    return write(quorum(tmp_path_factory.mktemp("tables") / "lab", HOSTILE))


@pytest.mark.parametrize(("width", "scheme"), [(1100, 1), (390, 0)], ids=["light", "dark phone"])
def test_the_page_in_a_browser(page: Path, tmp_path: Path, width: int, scheme: int) -> None:
    """Every plot is drawn without errors, inside the screen, and follows the chosen interval."""
    seen = _look(page, width, tmp_path, f"--blink-settings=preferredColorScheme={scheme}")
    assert seen["errors"] == []
    assert seen["requests"] == []
    assert not seen["broken"]
    assert (seen["width"], seen["wide"]) == ([width, width], [])
    # Overview, leaders, a replica, two of latency, two of throughput, errors, rebalances, a group,
    # connections.
    assert seen["plots"] >= 11
    assert seen["ticks"] == [f"20:20:{at:02d}" for at in (0, 10, 20, 30)]
    assert seen["paper"] == ("rgb(255, 255, 255)" if scheme else "rgb(20, 23, 26)")
    assert seen["chosen"] == "20:20:10.000 to 20:20:12.000"
    assert seen["whole"] == seen["again"]
    assert seen["whole"].endswith(", all of it")


def test_an_axis_without_the_days_between_two_captures(tmp_path: Path) -> None:
    """Both captures fill it, with round times; the first of each day has its date."""
    seen = _look(write(two_days(tmp_path / "lab")), 1100, tmp_path)
    assert seen["errors"] == []
    assert seen["ticks"] == ["20:20:00\n11-20", "20:20:10", "20:20:10\n11-22"]
    assert seen["whole"] == "11-20 20:20:00.000 to 11-22 20:20:10.000, all of it"


def test_plots_begin_where_nearly_all_is(tmp_path: Path) -> None:
    """A burst of a hundred requests in a thousand quiet seconds; the button shows the rest."""
    seconds = [0, *(600 + at / 10 for at in range(100)), 1000]
    times = [START + round(at * SECOND) for at in seconds]
    rows = [{"time_ns": at, "api_name": "Fetch", "latency_ns": 1} for at in times]
    seen = _look(write(written(tmp_path / "lab", exchanges=rows)), 1100, tmp_path)
    assert seen["errors"] == []
    assert seen["whole"] == "20:29:55.000 to 20:30:15.000, with most exchanges"
    assert seen["again"] == "20:20:00.000 to 20:36:40.000, all of it"


def test_the_page_on_paper(page: Path, tmp_path: Path) -> None:
    """It prints on a few sheets."""
    sheet = tmp_path / "report.pdf"
    subprocess.run(
        [
            str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=20000",
            "--no-pdf-header-footer", f"--print-to-pdf={sheet}", page.as_uri(),
        ],
        capture_output=True, check=True, timeout=120,
    )  # fmt: skip
    pages = len(re.findall(rb"/Type\s*/Page\b", sheet.read_bytes()))
    assert 2 <= pages <= 8
