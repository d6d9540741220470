"""What pipelines read of the lint: annotations that nothing can break out of, and SARIF as its schema wants it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from wiki.library import Wiki
from wiki.lint import RULES, explanations
from wiki.lint.report import sarif, workflow_commands
from wiki.page import Problem

TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["$schema", "version", "runs"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "originalUriBaseIds": {
                        "type": "object",
                        "additionalProperties": {
                            "type": "object",
                            "properties": {"uri": {"pattern": "/$"}, "uriBaseId": {}, "description": TEXT},
                            "additionalProperties": False,
                        },
                    },
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id", "shortDescription", "fullDescription", "help"],
                                            "properties": {
                                                "id": {"type": "string"},
                                                "name": {"type": "string"},
                                                "shortDescription": TEXT,
                                                "fullDescription": TEXT,
                                                "help": TEXT,
                                            },
                                            "additionalProperties": False,
                                        },
                                    }
                                },
                            }
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message", "ruleId", "level", "locations"],
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": -1},
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": TEXT,
                                "locations": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["physicalLocation"],
                                        "properties": {
                                            "physicalLocation": {
                                                "type": "object",
                                                "required": ["artifactLocation"],
                                                "properties": {
                                                    "artifactLocation": {
                                                        "type": "object",
                                                        "required": ["uri", "uriBaseId"],
                                                        "properties": {
                                                            "uri": {"pattern": "^(?!/)[A-Za-z0-9_.~!*'()/%-]+$"},
                                                            "uriBaseId": {"enum": ["SRCROOT", "WIKI"]},
                                                        },
                                                        "additionalProperties": False,
                                                    },
                                                    "region": {
                                                        "type": "object",
                                                        "properties": {"startLine": {"type": "integer", "minimum": 1}},
                                                        "additionalProperties": False,
                                                    },
                                                },
                                                "additionalProperties": False,
                                            }
                                        },
                                    },
                                },
                            },
                            "additionalProperties": False,
                        },
                    },
                },
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
}
"""What SARIF 2.1.0 (sections 3.13 to 3.52) asks of the parts that are written; it knows more parts."""
EVIL = "a\n::error::b\r%0A [link](javascript:x) {0} \\ \u202e <b>"
PATH = "technique/a b,c:d\n::error::é.md"


def found(folder: Path) -> list[tuple[Wiki, Problem]]:
    inside, outside = Wiki("mine", folder / "docs" / "mine"), Wiki("gpu-wiki", Path("/elsewhere/pages"))
    return [
        (inside, Problem(PATH, 3, "front-matter", EVIL)),
        (inside, Problem("technique/one.md", 0, "unreadable", "It cannot be read.", error=False)),
        (outside, Problem("kernel/softmax.md", 7, "no-such-rule", "odd")),
    ]


def test_sarif_is_as_its_schema_wants_it(tmp_path: Path) -> None:
    log = json.loads(sarif(found(tmp_path), tmp_path, explanations(), "1.0"))
    jsonschema.validate(log, SCHEMA)
    [run] = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    for rule in rules:
        assert len(rule["help"]["text"]) > 20
        assert rule["shortDescription"]["text"].count("\n") == 0
    first, second, third = run["results"]
    assert rules[first["ruleIndex"]]["id"] == "front-matter"
    assert (first["level"], second["level"]) == ("error", "warning")
    assert "ruleIndex" not in third
    places = [one["locations"][0]["physicalLocation"] for one in run["results"]]
    assert [place["artifactLocation"]["uri"] for place in places] == [
        "docs/mine/technique/a%20b%2Cc%3Ad%0A%3A%3Aerror%3A%3A%C3%A9.md",
        "docs/mine/technique/one.md",
        "gpu-wiki/kernel/softmax.md",
    ]
    assert [place["artifactLocation"]["uriBaseId"] for place in places] == ["SRCROOT", "SRCROOT", "WIKI"]
    assert ["region" in place for place in places] == [True, False, True]
    assert str(tmp_path) not in json.dumps(log), "no folder of this machine"


def test_no_text_of_a_page_is_a_link_or_a_placeholder(tmp_path: Path) -> None:
    text = sarif(found(tmp_path), tmp_path, explanations(), "1.0")
    assert text.isascii()
    said = json.loads(text)["runs"][0]["results"][0]["message"]["text"]
    assert "\\[link\\](javascript:x)" in said
    assert "{{0}}" in said
    assert "\n" not in said


def test_annotations_cannot_be_broken_out_of(tmp_path: Path) -> None:
    lines = list(workflow_commands(found(tmp_path), tmp_path))
    assert len(lines) == 3
    assert not any(c in line for line in lines for c in "\n\r")
    command, _, message = lines[0].removeprefix("::").partition("::")
    assert command == ("error file=docs/mine/technique/a b%2Cc%3Ad%0A%3A%3Aerror%3A%3Aé.md,line=3,title=front-matter")
    assert "%250A" in message, "what looks escaped in a page is not unescaped"
    assert lines[1] == "::warning file=docs/mine/technique/one.md,title=unreadable::It cannot be read."


@pytest.mark.parametrize("link", ["real", "linked"])
def test_a_folder_that_is_reached_by_a_link_is_below_the_working_folder_all_the_same(tmp_path: Path, link: str) -> None:
    (tmp_path / "real" / "mine").mkdir(parents=True)
    (tmp_path / "linked").symlink_to(tmp_path / "real", target_is_directory=True)
    wiki = Wiki("mine", (tmp_path / "real" / "mine").resolve())
    [line] = workflow_commands([(wiki, Problem("a.md", 1, "r", "m"))], tmp_path / link)
    assert line == "::error file=mine/a.md,line=1,title=r::m"
