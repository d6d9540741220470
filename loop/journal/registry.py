"""The runs that were started with this KOPT_HOME, and their folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kbs.common.files import make_folder, write_whole
from loop.journal.seeds import FOLDER


@dataclass(frozen=True)
class KnownRun:
    """A run that was started with this KOPT_HOME."""

    id: str
    root: Path
    """Its folder when it was started or opened last."""

    @property
    def there(self) -> bool:
        """Whether its journal still exists."""
        return (self.root / "journal.jsonl").is_file()


def remember(home: Path, run: str, root: Path) -> None:
    """Remember the folder of a run. Raises `KoptError`."""
    path = home / FOLDER / f"{run}.folder"
    data = str(root.resolve()).encode("utf-8", "surrogateescape") + b"\n"
    try:
        if path.read_bytes() == data:
            return
    except OSError:
        make_folder(path.parent)
    write_whole(path, data)


def known_runs(home: Path) -> tuple[KnownRun, ...]:
    """Every run that was started with this KOPT_HOME, sorted by id."""
    found = []
    for path in sorted((home / FOLDER).glob("*.folder")):
        try:
            place = path.read_bytes().decode("utf-8", "surrogateescape").removesuffix("\n")
        except OSError:
            continue
        found.append(KnownRun(path.name.removesuffix(".folder"), Path(place)))
    return tuple(found)
