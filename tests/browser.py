"""A headless Chromium, driven over its pipe: no package, no port and no network."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = (
    "--headless=new --remote-debugging-pipe --no-first-run --disable-gpu --disable-extensions --disable-dev-shm-usage"
    " --disable-quic --disable-background-networking --disable-component-update --disable-sync"
)
_START = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execvp(sys.argv[3], sys.argv[3:])"
)
"""The browser reads commands from descriptor 3 and writes what happens to 4."""
SECONDS = 60


def installed() -> str | None:
    """The first browser of `NAMES` that is here."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page of a browser. What it logs, and each address that it asks for, is kept."""

    def __init__(self, program: str, folder: Path) -> None:
        theirs, ours = os.pipe()
        mine, yours = os.pipe()
        passed = [fcntl.fcntl(one, fcntl.F_DUPFD, 10) for one in (theirs, yours)]
        flags = [*_FLAGS.split(), f"--user-data-dir={folder}", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        words = [sys.executable, "-c", _START, *map(str, passed), program, *flags, "about:blank"]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(words, pass_fds=passed, stdin=quiet, stdout=quiet, stderr=quiet)
        for one in (theirs, yours, *passed):
            os.close(one)
        self._write, self._read, self._data, self._count = ours, mine, b"", 0
        self.errors: list[str] = []
        self.asked: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    _session: str | None = None

    def close(self) -> None:
        """End the browser and wait for it."""
        self.process.terminate()
        self.process.wait(SECONDS)
        os.close(self._write)
        os.close(self._read)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Carry out a command of the DevTools protocol. Raises `RuntimeError`: it failed; `TimeoutError`."""
        self._count += 1
        said = {"id": self._count, "method": method, "params": params}
        if self._session:
            said["sessionId"] = self._session
        os.write(self._write, json.dumps(said).encode() + b"\0")
        while True:
            heard = self._next()
            if heard.get("id") == self._count:
                if "error" in heard:
                    raise RuntimeError(heard["error"]["message"])
                return dict(heard["result"])

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + SECONDS
        while b"\0" not in self._data:
            waiting = select.poll()  # select itself takes no descriptor above 1023
            waiting.register(self._read, select.POLLIN)
            if not waiting.poll(1000 * max(0.0, end - time.monotonic())):
                raise TimeoutError("the browser does not answer")
            part = os.read(self._read, 1 << 20)
            if not part:
                raise RuntimeError("the browser has ended")
            self._data += part
        first, _, self._data = self._data.partition(b"\0")
        heard: dict[str, Any] = json.loads(first)
        params = heard.get("params", {})
        if heard.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"]))
        elif heard.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif heard.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(str(params["args"]))
        elif heard.get("method") == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])
        return heard

    def run(self, script: str) -> Any:
        """The value of an expression on the page."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise RuntimeError(str(done["exceptionDetails"]))
        return done["result"].get("value")

    def until(self, script: str) -> Any:
        """The value of an expression as soon as it is true. Raises `TimeoutError`."""
        return _until(lambda: self.run(script), script)

    def size(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """The size of the window in pixels of the page, and the colors that its reader prefers."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, address: str) -> None:
        """Open an address and wait until all of it is there."""
        self.call("Page.navigate", url="about:blank")
        self.until("location.href === 'about:blank'")
        self.call("Page.navigate", url=address)
        self.until("location.href !== 'about:blank' && document.readyState === 'complete'")

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.call("Input.insertText", text=text)

    def press(self, key: str, code: int) -> None:
        """Press a key by its name and its number."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)

    def picture(self, *, whole: bool = False) -> bytes:
        """A PNG of what is seen, or of the whole page."""
        done = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(done["data"])


def _until(ask: Callable[[], Any], what: str) -> Any:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            if value := ask():
                return value
        except RuntimeError:  # the page is just being replaced
            pass
        time.sleep(0.02)
    raise TimeoutError(f"never so: {what}")
