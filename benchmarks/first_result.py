"""From the click on Run to the first live result, on localhost, and what it costs to load.

    python -m benchmarks.first_result [--site _build/html] [--times 5]

Each time in a fresh browser, so nothing is cached. The limits are 6 s and 18 MB (without
matplotlib); the load of the machine stands beside the times, because a busy one starts Python
several times slower.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from pathlib import Path

from playwright.sync_api import Playwright, sync_playwright

from scripts import serve
from tests.support.browser import FLAGS, chromium, serving

PAGE = "book/02_naive_softmax.html"
MAX_S, MAX_MB = 6.0, 18.0
# Clicks, waits for the live output of the cell itself, and measures both on one clock.
MEASURE = """() => new Promise(resolve => {
  const cell = document.querySelector("div.cell");
  const output = cell.querySelector(".cell_output");
  const began = performance.now();
  new MutationObserver(() => {
    if (output.textContent.includes("cpcore")) resolve((performance.now() - began) / 1000);
  }).observe(output, { childList: true, subtree: true });
  cell.querySelector(".cp-run button").click();
})"""


class Meter:
    """Counts the bytes that the server announces."""

    def __init__(self) -> None:
        self.sent = 0

    def watch(self) -> None:
        """From now on every answer of the server is counted."""
        send = serve.Handler.send_header

        def counted(handler: serve.Handler, name: str, value: str) -> None:
            if name == "Content-Length":
                self.sent += int(value)
            send(handler, name, value)

        serve.Handler.send_header = counted  # type: ignore[method-assign]


def measure(playwright: Playwright, home: str, meter: Meter) -> tuple[float, float]:
    """Seconds and megabytes of one first result."""
    browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
    try:
        page = browser.new_page()
        page.set_default_timeout(120_000)
        page.goto(home + PAGE, wait_until="networkidle")
        before = meter.sent
        seconds: float = page.evaluate(MEASURE)
        return seconds, (meter.sent - before) / 1e6
    finally:
        browser.close()


def main() -> None:
    """Measure and print; the exit code is 1 beyond a limit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_result", description=__doc__)
    parser.add_argument("--site", type=Path, default=serve.SITE, help="folder of the built site")
    parser.add_argument("--times", type=int, default=5)
    args = parser.parse_args()
    meter = Meter()
    meter.watch()
    found = []
    with serving(args.site) as home, sync_playwright() as playwright:
        for _ in range(args.times):
            found.append(measure(playwright, home, meter))
            print(f"{found[-1][0]:.2f} s, load {os.getloadavg()[0]:.1f}", flush=True)
    seconds = statistics.median(s for s, _ in found)
    megabytes = max(mb for _, mb in found)
    print(f"median {seconds:.2f} s (limit {MAX_S}), {megabytes:.1f} MB (limit {MAX_MB})")
    sys.exit(seconds > MAX_S or megabytes > MAX_MB)


if __name__ == "__main__":
    main()
