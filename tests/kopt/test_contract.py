"""What commands print, schemas say and stored documents mean is what it was when tests/golden/contract was recorded.

All of it goes through the command line: no module of kopt's is imported here. A difference that is meant is named in
tests/golden/contract/improvements.json under `json/NAME` or `schemas/NAME`, with why and at which places: just these
differ, and each of them does. tests/golden/contract/record.py records anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Run
from tests.golden.contract import record

SCHEMAS = sorted(path.stem for path in (record.HERE / "schemas").glob("*.json"))
GROUPS = record.load_groups()
IMPROVED: dict[str, dict[str, Any]] = json.loads((record.HERE / "improvements.json").read_text("utf-8"))
Kopt = Callable[..., Run]


@pytest.fixture(scope="session")
def command(run: Kopt) -> record.Command:
    """A command of this checkout."""

    def call(home: Path, words: Sequence[str], stdin: str, folder: Path, more: Mapping[str, str]) -> tuple[int, str]:
        done = run(home, *words, stdin=stdin, cwd=folder, env=dict(more))
        return done.code, done.out

    return call


def judged(name: str, differences: Sequence[str]) -> list[str]:
    """What is wrong with an item: places that differ and are not named as improved, or the other way round."""
    named = set(IMPROVED[name]["at"]) if name in IMPROVED else set()
    places = [re.sub(r"\[\d+\]", "[*]", line.partition(": ")[0]) for line in differences]
    wrong = [f"{name}: {line}" for line, place in zip(differences, places, strict=True) if place not in named]
    gone = sorted(named - set(places))
    return wrong + [f"{name}: improvements.json names {place}, which does not differ" for place in gone]


def test_the_commands_are_those_of_this_checkout(kopt: Kopt) -> None:
    """An editable install of another one would be tested in its place: PYTHONPATH prevents that."""
    bundled = kopt("ingest", "--json").json["data"]["wikis"][0]["root"]
    assert Path(bundled).is_relative_to(ROOT)


def test_improvements_name_what_was_recorded() -> None:
    known = {f"schemas/{name}" for name in SCHEMAS}
    known |= {f"json/{name}" for group in GROUPS.values() for name in record.names(group)}
    assert IMPROVED.keys() <= known
    for name, said in IMPROVED.items():
        assert said.keys() == {"why", "at"}, name
        assert all(said.values()), f"{name}: an improvement needs its reason and its places"


def test_every_record_belongs_to_a_command() -> None:
    played = {name for group in GROUPS.values() for name in record.names(group)}
    assert {path.stem for path in (record.HERE / "json").glob("*.json")} == played


def test_every_command_is_played(kopt: Kopt) -> None:
    """Documents have a schema too, and no command."""
    lines = {" ".join(step.get("words", ())) for group in GROUPS.values() for step in group["steps"]}
    documents = {"receipt", "external-receipt", "run-request", "run-proposal"}
    for name in set(kopt("schema").out.split("\n")) - documents - {""}:
        assert any(line == name or line.startswith(f"{name} ") for line in lines), name


@pytest.mark.parametrize("group", GROUPS)
def test_commands(group: str, command: record.Command, built_home: Path, tmp_path: Path) -> None:
    if GROUPS[group].get("cpu") and Path("/dev/nvidiactl").exists():
        pytest.skip("it was recorded where no GPU is")
    record.make_home(GROUPS[group].get("home", "empty"), built_home, tmp_path / "home")
    wrong = []
    for name, found in record.Play(tmp_path, command).run(GROUPS[group]).items():
        wrong += judged(f"json/{name}", list(record.differences(record.recorded(name), found)))
    assert not wrong, "\n".join(wrong)


# --- schemas ----------------------------------------------------------------------------------------------------------


def test_the_list_of_schemas(kopt: Kopt) -> None:
    assert sorted(line.replace(" ", "_") for line in kopt("schema").out.splitlines() if line) == SCHEMAS


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema(name: str, kopt: Kopt) -> None:
    done = kopt("schema", *name.split("_"))
    assert done.code == 0, done.err
    old = json.loads((record.HERE / "schemas" / f"{name}.json").read_text("utf-8"))
    wrong = judged(f"schemas/{name}", list(record.differences(inlined(old), inlined(done.json))))
    assert not wrong, "\n".join(wrong)


def inlined(schema: dict[str, Any]) -> Any:
    """A schema without titles, descriptions and the names of its definitions."""
    definitions = schema.get("$defs", {})

    def plain(part: Any, within: tuple[str, ...]) -> Any:
        if isinstance(part, list):
            return [plain(item, within) for item in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            name = part["$ref"].removeprefix("#/$defs/")
            rest = plain({key: value for key, value in part.items() if key != "$ref"}, within)
            if name in within:
                return {"again": len(within) - within.index(name), **rest}
            return {**plain(definitions[name], (*within, name)), **rest}
        return {key: known(key, value, within) for key, value in part.items() if key not in _LEFT_OUT}

    def known(key: str, value: Any, within: tuple[str, ...]) -> Any:
        if key in _OF_NAMES and isinstance(value, dict):
            return {name: plain(item, within) for name, item in value.items()}
        if key == "discriminator":
            return {"propertyName": value["propertyName"], "mapping": sorted(value.get("mapping", {}))}
        return value if key in _VALUES else plain(value, within)

    return plain(schema, ())


_LEFT_OUT = {"title", "description", "$defs"}
_OF_NAMES = {"properties", "patternProperties"}
_VALUES = {"const", "default", "enum", "examples", "required"}
