"""A wiki in git that two people have cloned, and what is reachable in their clones and in the remote."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conftest import Run, page_text, run_kopt

_WHO = {
    f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in (("NAME", "A"), ("EMAIL", "a@b"))
}
ENVIRONMENT = {**_WHO, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def git(folder: Path, *words: str, check: bool = True, env: Mapping[str, str] | None = None) -> str:
    """What git prints."""
    done = subprocess.run(
        ["git", *words], cwd=folder, env={**os.environ, **ENVIRONMENT, **(env or {})}, check=check, capture_output=True
    )
    return done.stdout.decode().strip()


def page(id: str, *sentences: str, links: str = "") -> str:
    """A page without lint errors."""
    told = "\n".join(f"{one}[^src-a]" for one in sentences)
    see = f"\n\nSee [it]({links})." if links else ""
    return page_text(id, f"# {id.split('/')[1]}\n\n{told}{see}\n\n[^src-a]: src, p. 1.")


SCAN = page("kernel/scan", "A scan adds up prefixes.", "It reads each element once.", links="sum.md")
SUM = page("kernel/sum", "A sum adds all elements.", "It reads each element once.", links="scan.md")


@dataclass
class Clones:
    """`one` and `two` are clones of `remote.git`, each with a wiki of two pages."""

    root: Path
    home: Path
    prefix: str = ""
    proposed: list[str] = field(default_factory=list)
    """The object of each page that was proposed."""

    @classmethod
    def make(cls, root: Path, home: Path, prefix: str = "") -> Clones:
        """`prefix`: the wiki's folder below the repository's."""
        made = cls(root, home, prefix)
        seed = root / "one"
        for name, text in (("kernel/scan", SCAN), ("kernel/sum", SUM)):
            made.write("one", name, text)
        git(root, "init", "-q", "-b", "main", "one")
        done = made.kopt("lint", "--fix", "--yes")
        assert done.code == 0, done.out
        git(seed, "add", "-A")
        git(seed, "commit", "-q", "-m", "Begin a wiki")
        git(root, "init", "-q", "--bare", "-b", "main", "remote.git")
        git(seed, "remote", "add", "origin", str(root / "remote.git"))
        git(seed, "push", "-q", "-u", "origin", "main")
        git(root, "clone", "-q", str(root / "remote.git"), "two")
        return made

    def copy(self, to: Path) -> Clones:
        """The same in another folder."""
        shutil.copytree(self.root, to, symlinks=True)
        for name in ("one", "two"):
            git(to / name, "remote", "set-url", "origin", str(to / "remote.git"))
        return Clones(to, self.home, self.prefix, list(self.proposed))

    def wiki(self, clone: str) -> Path:
        """The wiki's folder of a clone."""
        return self.root / clone / self.prefix

    def write(self, clone: str, id: str, text: str) -> None:
        """Write a page into the work tree of a clone."""
        file = self.wiki(clone) / f"{id}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")

    def kopt(self, what: str, *words: str, clone: str = "one", **more: Any) -> Run:
        """`kopt wiki WHAT ... --wiki CLONE`"""
        env = {**ENVIRONMENT, **more.pop("env", {})}
        return run_kopt(
            self.home, "wiki", what, *words, "--wiki", str(self.wiki(clone)), cwd=self.root, env=env, **more
        )

    def json(self, what: str, *words: str, clone: str = "one", code: int = 0, **more: Any) -> dict[str, Any]:
        """The data of a command that ends so; of an error the error."""
        done = self.kopt(what, *words, "--json", clone=clone, **more)
        assert done.code == code, (done.out, done.err)
        found = done.json["data"] if done.json["data"] is not None else done.json["errors"][0]
        assert isinstance(found, dict)
        return found

    def propose(self, id: str, text: str, clone: str = "one", **more: Any) -> dict[str, Any]:
        """Propose a page from a file."""
        file = self.root / "page.md"
        file.write_text(text, "utf-8")
        made = self.json("propose", "--page", str(file), clone=clone, **more)
        assert made["page"] == id
        self.proposed.append(git(self.root, "hash-object", str(file)))
        return made

    def commit(self, clone: str, id: str, text: str) -> None:
        """Change a page on the main branch, by hand."""
        self.write(clone, id, text)
        git(self.root / clone, "add", "-A")
        git(self.root / clone, "commit", "-q", "-m", f"Change {id}")

    def reachable(self, *names: str) -> set[str]:
        """Every object that some ref of these repositories holds."""
        out = [
            git(self.root / name, "rev-list", "--objects", "--all") for name in names or ("one", "two", "remote.git")
        ]
        return {line.split(" ")[0] for one in out for line in one.splitlines()}

    def lost(self) -> list[str]:
        """The proposed pages that no ref of a clone or of the remote holds."""
        found = self.reachable()
        return [one for one in self.proposed if one not in found]

    def state(self, clone: str) -> tuple[str, str, str]:
        """What must not change where a command changes nothing: branches, index and files."""
        folder = self.root / clone
        refs = git(folder, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/rejected")
        return refs, git(folder, "ls-files", "--stage"), git(folder, "status", "--porcelain", "-uall")

    def text(self, clone: str, id: str) -> str:
        """A page of a clone's main branch."""
        return git(self.root / clone, "show", f"main:{self.prefix}{id}.md") + "\n"


Maker = Callable[..., Clones]
