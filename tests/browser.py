"""A real browser for tests: headless Chromium, asked over a pair of pipes."""

import base64
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)


def find() -> str | None:
    """The path of an installed browser, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextlib.contextmanager
def browser(profile: Path) -> Iterator["Tab"]:
    """A tab of a browser that runs as long as the context does."""
    path = find()
    assert path is not None
    (asked, ask), (heard, answer) = _pipe(), _pipe()
    # The browser reads its file 3 and writes its file 4. A shell sees to that: between fork and exec of a process with
    # as many threads as JAX has, Python had better do nothing.
    wire = f'exec "$0" "$@" 3<&{asked} 4>&{answer}'
    process = subprocess.Popen(
        ["bash", "-c", wire, path, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        pass_fds=(asked, answer),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(asked)
    os.close(answer)
    try:
        with open(ask, "wb") as requests, open(heard, "rb") as answers:
            yield Tab(requests, answers)
    finally:
        process.kill()
        process.wait()


def _pipe() -> tuple[int, int]:
    """Both ends of a pipe, with numbers that are out of the shell's way."""
    ends = os.pipe()
    far = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in ends]
    for end in ends:
        os.close(end)
    return far[0], far[1]


class Tab:
    """One tab, spoken to in the browser's DevTools protocol."""

    def __init__(self, requests: Any, answers: Any) -> None:
        self._requests, self._answers = requests, answers
        self._last = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        (page,) = (
            target
            for target in self.ask("Target.getTargets")["targetInfos"]
            if target["type"] == "page"
        )
        attached = self.ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends a request and waits for its answer; what is told meanwhile goes to `events`."""
        self._last += 1
        request: dict[str, Any] = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            request["sessionId"] = self._session
        self._requests.write(json.dumps(request).encode() + b"\0")
        self._requests.flush()
        while (message := self._next()).get("id") != self._last:
            self.events.append(message)
        assert "error" not in message, message
        return message["result"]

    def _next(self) -> dict[str, Any]:
        heard = bytearray()
        while (byte := self._answers.read(1)) != b"\0":
            assert byte, "the browser is gone"
            heard += byte
        return json.loads(heard)

    def show(self, width: int, height: int, dark: bool = False, phone: bool = False) -> None:
        """How the page is to be looked at from now on."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, page: Path) -> None:
        """Opens a file and waits until all of it is there."""
        self.events.clear()
        self.ask("Page.navigate", url=page.absolute().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression on the page."""
        answer = self.ask(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def complaints(self) -> list[dict[str, Any]]:
        """Errors and warnings on the console, exceptions, and whatever the page's policy refused."""
        methods = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [event for event in self.events if event.get("method") in methods]

    def requested(self) -> list[str]:
        """The addresses the page asked for, those that hold their own data aside."""
        urls = [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return [url for url in urls if not url.startswith("data:")]

    def screenshot(self, whole: bool = True) -> bytes:
        """A PNG of the page, or of what of it fits into the window."""
        answer = self.ask("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])
