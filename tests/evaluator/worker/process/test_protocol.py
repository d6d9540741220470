"""Messages: what is sent arrives, and whatever else arrives is a `ProtocolError` that leaves nothing behind."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluator.worker.process.protocol import MAX_DESCRIPTORS, MAX_MESSAGE, ProtocolError, receive, send

Pair = tuple[socket.socket, socket.socket]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
SHARED = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Both ends of a channel."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.settimeout(5)
        theirs.settimeout(5)
        yield ours, theirs


def open_sockets() -> int:
    """Sockets that this process has open; other threads may be reading files."""
    links = [path.readlink() for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return sum(str(link).startswith("socket:") for link in links)


@pytest.mark.slow
@SHARED
@given(message=st.dictionaries(st.text(), JSON, max_size=5))
def test_a_message_comes_back_as_it_was(pair: Pair, message: dict[str, Any]) -> None:
    ours, theirs = pair
    send(ours, message)
    assert receive(theirs) == (message, [])


def test_messages_keep_their_bounds_and_order(pair: Pair) -> None:
    ours, theirs = pair
    for n in range(5):
        send(ours, {"n": n})
    received = [receive(theirs) for _ in range(5)]
    assert [found[0]["n"] for found in received if found] == [0, 1, 2, 3, 4]


def test_descriptors_travel_and_name_the_same_file(pair: Pair, tmp_path: Path) -> None:
    ours, theirs = pair
    with (tmp_path / "file").open("w+") as stream:
        send(ours, {"op": "map"}, [stream.fileno()] * 3)
        received = receive(theirs)
        assert received is not None
        stream.write("content")
        stream.flush()
    assert received[0] == {"op": "map"}
    assert len(set(received[1])) == 3
    for descriptor in received[1]:
        assert os.pread(descriptor, 100, 0) == b"content"
        os.close(descriptor)


def test_as_many_descriptors_as_are_allowed(pair: Pair) -> None:
    ours, theirs = pair
    send(ours, {}, [ours.fileno()] * MAX_DESCRIPTORS)
    received = receive(theirs)
    assert received is not None
    assert len(received[1]) == MAX_DESCRIPTORS
    for descriptor in received[1]:
        os.close(descriptor)


def test_more_descriptors_are_refused_and_closed(pair: Pair) -> None:
    ours, theirs = pair
    before = open_sockets()
    send(ours, {}, [ours.fileno()] * (MAX_DESCRIPTORS + 8))
    with pytest.raises(ProtocolError, match="too long"):
        receive(theirs)
    assert open_sockets() == before


def test_a_message_of_the_greatest_length_passes_and_one_byte_more_does_not(pair: Pair) -> None:
    ours, theirs = pair
    text = "x" * (MAX_MESSAGE - len(json.dumps({"text": ""})))
    send(ours, {"text": text})
    assert receive(theirs) == ({"text": text}, [])
    with pytest.raises(ProtocolError, match="longer than"):
        send(ours, {"text": text + "x"})
    theirs.setblocking(False)
    with pytest.raises(BlockingIOError):
        receive(theirs)  # nothing of it was sent


def test_a_longer_packet_is_refused_and_not_read_in_parts(pair: Pair) -> None:
    ours, theirs = pair
    ours.send(json.dumps({"text": "x" * MAX_MESSAGE}).encode())
    with pytest.raises(ProtocolError, match="too long"):
        receive(theirs)
    send(ours, {"next": True})
    assert receive(theirs) == ({"next": True}, [])


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b'{"ok": tru',
        b'{"ok": true} {"ok": true}',
        b"\xff\xfe\xfd",
        b'{"a": "\xe4"}',
        b"[" * 100_000,
        b'{"a":' * 30_000,
        b"1" * 5_000,
        b"[]",
        b"null",
        b'"text"',
        b"\0",
        b" ",
    ],
)
def test_what_is_no_message(pair: Pair, data: bytes) -> None:
    ours, theirs = pair
    before = open_sockets()
    socket.send_fds(ours, [data], [ours.fileno()])
    with pytest.raises(ProtocolError):
        receive(theirs)
    assert open_sockets() == before


@SHARED
@given(data=st.binary(min_size=1, max_size=300) | st.text(alphabet='{}[]":,0e-tru\\', min_size=1).map(str.encode))
def test_any_bytes_are_a_message_or_a_protocol_error(pair: Pair, data: bytes) -> None:
    ours, theirs = pair
    ours.send(data)
    try:
        received = receive(theirs)
    except ProtocolError:
        return
    assert received is not None
    assert isinstance(received[0], dict)
    assert received[0] == json.loads(data)


def test_the_end_of_the_other_side_is_none(pair: Pair) -> None:
    ours, theirs = pair
    ours.close()
    assert receive(theirs) is None


def test_an_empty_packet_is_the_end_and_keeps_no_descriptor(pair: Pair) -> None:
    """It cannot be told from a closed channel; a worker that sends one has broken the protocol."""
    ours, theirs = pair
    before = open_sockets()
    socket.send_fds(ours, [b""], [ours.fileno()])
    assert receive(theirs) is None
    assert open_sockets() == before


def test_sending_to_nobody_is_an_os_error(pair: Pair) -> None:
    ours, theirs = pair
    theirs.close()
    with pytest.raises(OSError, match="pipe"):
        send(ours, {})


def test_waiting_ends_with_the_channels_timeout(pair: Pair) -> None:
    _, theirs = pair
    theirs.settimeout(0.01)
    with pytest.raises(TimeoutError):
        receive(theirs)
