"""What commands print, schemas say and stored documents mean is what it was when tests/golden/contract was recorded.

All of it goes through the command line: no module of kopt's is imported here. Where a difference is meant,
`just record` records it, and the pull request says why.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Run
from tests.golden.contract import record

SCHEMAS = sorted(path.stem for path in (record.HERE / "schemas").glob("*.json"))
GROUPS = record.load_groups()
Kopt = Callable[..., Run]


def test_the_commands_are_those_of_this_checkout(kopt: Kopt) -> None:
    """An editable install of another one would be tested in its place: PYTHONPATH prevents that."""
    bundled = kopt("ingest", "--json").json["data"]["wikis"][0]["root"]
    assert Path(bundled).is_relative_to(ROOT)


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
def test_commands(group: str, pristine_home: Path, tmp_path: Path) -> None:
    if GROUPS[group].get("cpu") and Path("/dev/nvidiactl").exists():
        pytest.skip("it was recorded where no GPU is")
    record.make_home(GROUPS[group].get("home", "empty"), pristine_home, tmp_path / "home")
    wrong = []
    for name, found in record.Play(tmp_path, record.command).run(GROUPS[group]).items():
        wrong += [f"{name}: {line}" for line in record.differences(record.recorded(name), found)]
    assert not wrong, "\n".join([*wrong, f"If this is meant: just record {group}"])


# --- comparing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recorded", "found", "wrong"),
    [
        ({"results": [{"rule": "a", "n": 1}]}, {"results": [{"rule": "b", "n": 2}, {"rule": "a", "n": 1}]}, 0),
        ({"results": [{"rule": "a", "n": 1}]}, {"results": [{"rule": "a", "n": 2}, {"rule": "b", "n": 1}]}, 1),
        ({"results": [{"rule": "a"}, {"rule": "b"}]}, {"results": [{"rule": "b"}, {"rule": "c"}]}, 2),
        ({"enum": ["a", "b"]}, {"enum": ["a", "c", "b"]}, 0),
        ({"enum": ["a", "b"]}, {"enum": ["b", "c"]}, 2),
        ({"passages": ["<each>", {"path": "<any>"}]}, {"passages": [{"path": "x"}, {"path": None}]}, 0),
        ({"passages": ["<each>", {"path": "<any>"}]}, {"passages": []}, 0),
        ({"passages": ["<each>", {"path": "<any>"}]}, {"passages": [{"path": "x", "score": 1}, {}]}, 2),
        ({"score": "<any>"}, {"score": 0.5}, 0),
        ({"other": [1, 2]}, {"other": [1, 2, 3]}, 1),
    ],
)
def test_what_may_grow(recorded: object, found: object, wrong: int) -> None:
    assert len(list(record.differences(recorded, found))) == wrong


# --- schemas ----------------------------------------------------------------------------------------------------------


def test_the_list_of_schemas(kopt: Kopt) -> None:
    assert sorted(line.replace(" ", "_") for line in kopt("schema").out.splitlines() if line) == SCHEMAS


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema(name: str, kopt: Kopt) -> None:
    done = kopt("schema", *name.split("_"))
    assert done.code == 0, done.err
    old = json.loads((record.HERE / "schemas" / f"{name}.json").read_text("utf-8"))
    wrong = list(record.differences(inlined(old), inlined(done.json)))
    assert not wrong, "\n".join([*wrong, "If this is meant: just record schemas"])


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
