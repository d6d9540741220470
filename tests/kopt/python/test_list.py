"""docs/python.md lists what `kopt` has, as it is; and nothing is imported before it is used."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest
from pydantic import BaseModel

import kopt
from kbs.common.errors import KoptError
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "python.md").read_text("utf-8")
FUNCTIONS = [name for name in kopt.__all__ if inspect.isfunction(getattr(kopt, name))]
PROBE = """
import sys
import kopt
print([name for name in sys.modules if name.partition(".")[0] in {packages!r}])
kopt.KoptError
print([name for name in {heavy!r} if name in sys.modules])
"""


def test_every_name_is_there_and_listed() -> None:
    assert set(kopt.__all__) == set(kopt._FROM)
    assert set(kopt.__all__) <= set(dir(kopt))
    named = set(re.findall(r"`kopt\.(\w+)`", PAGE)) - {"toml"}  # the file kopt.toml
    assert named == set(kopt.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = kopt.nothing  # type: ignore[attr-defined]


def test_signatures_are_those_of_the_page() -> None:
    [block] = re.findall(r"```python\n(kopt\.ask\(.*?)```", PAGE, re.DOTALL)
    wanted = []
    for name in re.findall(r"^kopt\.(\w+)\(", block, re.MULTILINE):
        signature = inspect.signature(getattr(kopt, name))
        bare = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
        wanted.append(f"kopt.{name}{inspect.Signature(bare)}")
    assert block.splitlines() == wanted
    assert sorted(re.findall(r"^kopt\.(\w+)\(", block, re.MULTILINE)) == sorted(FUNCTIONS)


def test_what_each_returns_and_raises_is_what_the_page_says() -> None:
    cells = [
        [cell.strip(" `") for cell in line.split("|")[1:-1]] for line in PAGE.splitlines() if line[:8] == "| `kopt."
    ]
    rows = {row[0].removeprefix("kopt."): row for row in cells if len(row) == 5}
    assert set(rows) == set(FUNCTIONS)
    for name, (_, _, returned, raised, costs) in rows.items():
        assert costs
        function = getattr(kopt, name)
        assert inspect.signature(function).return_annotation == returned
        if returned != "None":
            assert issubclass(getattr(kopt, returned), BaseModel)
            assert f"`kopt.{returned}`" in PAGE
        said = " ".join((function.__doc__ or "").split())
        assert raised in ("", "nothing") or f"`{raised}`" in said
        for error in re.findall(r"`(\w+Error)`", said):
            assert issubclass(getattr(kopt, error), KoptError)


@pytest.mark.processes
def test_import_kopt_imports_nothing_else() -> None:
    packages = ("kbs", "wiki", "ingest", "loop", "evaluator", "pydantic", "numpy", "importlib.metadata", "email")
    heavy = ("pydantic", "numpy", "chromadb", "torch")
    code = PROBE.format(packages=packages, heavy=heavy)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split("\n")[:2] == ["[]", "[]"]
