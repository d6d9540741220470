"""Arguments as they cross: the tree of a value, and the value of a tree."""

from __future__ import annotations

import enum
import json
import math
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.worker.memory.values import (
    MAX_ITEMS,
    MAX_TEXT,
    UnsupportedValueError,
    constant,
    constants,
    flatten,
    names_of,
    rebuild,
    results,
)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(st.characters(), max_size=8)
    | st.sampled_from([torch.float16, torch.bool, torch.device("cpu"), torch.device("cuda", 1), torch.device("meta")])
)
TENSORS = st.integers(0, 3).map(lambda n: torch.arange(n))
VALUES = st.recursive(
    SCALARS | TENSORS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


def same(a: Any, b: Any) -> bool:
    """Equal in type and content; tensors are the very same object."""
    if isinstance(a, torch.Tensor):
        return a is b
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return bool(a == b) or (isinstance(a, float) and math.isnan(a) and math.isnan(b))


def crossed(value: Any) -> Any:
    """What arrives on the other side."""
    tensors: list[torch.Tensor] = []
    tree = json.loads(json.dumps(flatten(value, tensors)))
    return rebuild(tree, tensors)


@settings(deadline=None)
@given(VALUES)
def test_what_crosses_arrives_as_it_was(value: Any) -> None:
    assert same(crossed(value), value)


@settings(deadline=None)
@given(VALUES)
def test_every_tensor_has_one_name(value: Any) -> None:
    tensors: list[torch.Tensor] = []
    tree = flatten(value, tensors)
    assert sorted(names_of(tree)) == list(range(len(tensors)))


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("T", ["0"]),
        (["T", 1, "T"], ["0", "2"]),
        ({"x": "T", "y": "T"}, ["x", "y"]),
        ({"x": ["T", "T"], "y": {"z": "T"}}, ["x[0]", "x[1]", "y.z"]),
        (["T", ["T", {"k": ("T", "T")}]], ["0", "1[0]", "1[1].k[0]", "1[1].k[1]"]),
    ],
)
def test_names_say_where_a_tensor_stands(value: Any, names: list[str]) -> None:
    tensors: list[torch.Tensor] = []
    found = names_of(flatten(_with_tensors(value), tensors))
    assert [found[n] for n in range(len(tensors))] == names


def _with_tensors(value: Any) -> Any:
    if value == "T":
        return torch.zeros(1)
    if isinstance(value, dict):
        return {key: _with_tensors(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_with_tensors(item) for item in value)
    return value


def test_a_tensor_that_stands_twice_is_two() -> None:
    x = torch.zeros(2)
    tensors: list[torch.Tensor] = []
    assert flatten([x, x], tensors) == {"list": [{"tensor": 0}, {"tensor": 1}]}
    assert [t is x for t in tensors] == [True, True]


def test_a_shape_is_a_tuple_and_an_ordered_dict_a_dict() -> None:
    assert same(crossed(torch.zeros(2, 3).shape), (2, 3))
    assert same(crossed(OrderedDict(a=1)), {"a": 1})
    assert crossed(namedtuple("Pair", "a b")(1, 2)) == (1, 2)
    assert crossed(enum.IntEnum("Mode", "FAST")["FAST"]) == 1


@pytest.mark.parametrize(
    "value",
    [
        np.zeros(2),
        np.int64(3),
        {1, 2},
        b"bytes",
        1 + 2j,
        object(),
        torch.nn.Linear(1, 1),
        torch.Generator(),
        lambda x: x,
        [torch.zeros(1), {"deep": [object()]}],
        {1: torch.zeros(1)},
        {None: 1},
        {"1": 1, 1: 2},
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_cross_is_named(value: Any) -> None:
    with pytest.raises(UnsupportedValueError, match="cannot be passed"):
        flatten(value, [])


def test_a_thousand_tensors_cross_and_no_more() -> None:
    value = [torch.zeros(0)] * MAX_ITEMS
    assert len(crossed(value)) == MAX_ITEMS
    with pytest.raises(UnsupportedValueError, match="more than 1000 tensors"):
        flatten([*value, torch.zeros(0)], [])


def test_numbers_beyond_the_tensors_are_not_counted() -> None:
    assert len(crossed([torch.zeros(0)] * MAX_ITEMS + [1] * 10)) == MAX_ITEMS + 10


@settings(deadline=None)
@given(VALUES)
def test_what_stands_beside_the_tensors_of_a_result_is_told_as_the_tree_has_it(value: Any) -> None:
    others: list[Any] = []
    tree = flatten(value, [])
    results(value, tree, others=others)
    assert json.dumps([constant(other) for other in others]) == json.dumps(constants(tree))


def test_other_values_are_told_by_their_types_and_long_texts_by_their_beginnings() -> None:
    class Text(str):
        pass

    assert constant(Text("ok")) == {"type": "Text"}
    assert constant(object()) == {"type": "object"}
    long = "x" * (MAX_TEXT + 1)
    assert constants(flatten([long], [])) == [constant(long)] == [{"scalar": "x" * MAX_TEXT}]
