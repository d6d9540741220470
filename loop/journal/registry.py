"""Which runs this KOPT_HOME began, and where they lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kbs.common.files import make_folder, write_whole
from loop.journal.seeds import FOLDER


@dataclass(frozen=True)
class KnownRun:
    """A run that was begun here."""

    id: str
    root: Path
    """Its folder, as it was when it began or was opened last."""

    @property
    def there(self) -> bool:
        """Whether its journal still stands."""
        return (self.root / "journal.jsonl").is_file()


def remember(home: Path, run: str, root: Path) -> None:
    """Note where a run lies. Raises `KoptError`."""
    path = home / FOLDER / f"{run}.folder"
    data = str(root.resolve()).encode("utf-8", "surrogateescape") + b"\n"
    try:
        if path.read_bytes() == data:
            return
    except OSError:
        make_folder(path.parent)
    write_whole(path, data)


def known_runs(home: Path) -> tuple[KnownRun, ...]:
    """Every run that was begun with this KOPT_HOME, by its id."""
    found = []
    for path in sorted((home / FOLDER).glob("*.folder")):
        try:
            place = path.read_bytes().decode("utf-8", "surrogateescape").removesuffix("\n")
        except OSError:
            continue
        found.append(KnownRun(path.name.removesuffix(".folder"), Path(place)))
    return tuple(found)
