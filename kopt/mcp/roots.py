"""Which files a client may name: those of the working folder, of runs, of wikis, and receipts that kopt kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evaluator.store.store import FOLDER as RECEIPTS
from kbs.common.errors import UsageError
from kbs.common.visible_text import visible
from kopt.services.engine import Engine
from kopt.services.runs.lookup import find_run, runs_of_home
from kopt.services.settings import load_settings


@dataclass(frozen=True)
class Roots:
    """The folders that a server was started for. A path is checked by where it leads, through every link."""

    root: Path
    """The working folder, resolved; relative paths begin here."""

    def file(self, given: str) -> Path:
        """The full path of something that may be read. UsageError `outside_roots`, `path_invalid`."""
        return self._inside(given, [self.root, *self._others()])

    def own(self, given: str) -> Path:
        """The full path of something below the working folder, where kopt may write. UsageError as `file`."""
        return self._inside(given, [self.root])

    def run(self, given: str) -> str:
        """The folder of the run that is meant; an empty text means the only one here. UsageError."""
        if "/" in given or given.startswith("."):
            self.file(given)  # before anything is looked for there
        return str(self.file(str(find_run(given or None, self.root, load_settings().home).root)))

    def wiki(self, given: str) -> str:
        """A wiki's name, or its folder. UsageError as `file`."""
        engine = Engine(load_settings())
        return given if given in [wiki.name for wiki in engine.wikis] else str(self.file(given))

    def _inside(self, given: str, roots: list[Path]) -> Path:
        try:
            found = (self.root / given).resolve()
        except (OSError, ValueError, RuntimeError) as error:  # a NUL, a name too long, a loop of links
            raise UsageError(
                f"{visible(given)[:200]} is not a path", code="path_invalid", hint="Give a file below the folder."
            ) from error
        if not any(found.is_relative_to(root) for root in roots):
            raise UsageError(
                f"{visible(given)[:200]} is outside the folders that this server may use",
                code="outside_roots",
                hint=f"They are {self.root}, runs and wikis. `kopt mcp --root FOLDER` serves another.",
            )
        return found

    def _others(self) -> Iterator[Path]:
        """What may be read besides the working folder."""
        engine = Engine(load_settings())
        yield (engine.settings.home / RECEIPTS).resolve()
        for wiki in engine.wikis:
            yield wiki.root.resolve()
        for run in runs_of_home(engine.settings.home):
            yield run.root.resolve()
