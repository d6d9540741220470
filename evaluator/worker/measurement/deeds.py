"""What a candidate's own code does, told by Python itself: its audit events, which no spelling of a text avoids.

A hook for them cannot be taken off. What PyTorch, Triton and imports do by themselves is left out: an event counts if
the candidate's file, or code that it made, stands before any library on the stack. For a search of what is not the
candidate's it also counts if libraries only handed on what did it.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

_EVENTS = {
    event: id_
    for id_, events in {
        "scans_memory": "gc.get_objects gc.get_referrers gc.get_referents",
        "reads_frames": "sys._getframe sys._current_frames sys._current_exceptions sys.settrace sys.setprofile"
        " object.__getattr__",
        "dynamic_code": "exec compile marshal.loads code.__new__ function.__new__",
        "starts_processes": "subprocess.Popen os.system os.exec os.fork os.forkpty os.posix_spawn os.spawn",
        "signals_processes": "os.kill os.killpg signal.pthread_kill",
        "network": "socket.connect socket.bind socket.sendto socket.sendmsg socket.getaddrinfo socket.gethostbyname",
        "writes_files": "open os.listdir os.scandir",
        "loads_libraries": "ctypes.dlopen",
        "raw_memory": "ctypes.string_at ctypes.wstring_at ctypes.cdata",
    }.items()
    for event in events.split()
}
_FRAMES = frozenset({"tb_frame", "gi_frame", "cr_frame", "ag_frame"})
"""Attributes that hold a frame."""
_LISTS = frozenset({"open", "listdir", "scandir"})
_OF_PROCESSES = re.compile(r"/proc/\d+(?!\S*/cgroup\Z)(?:/|\Z)")
_EVALUATOR = str(Path(__file__).parents[2]) + os.sep
_STANDARD = (os.path.dirname(os.__file__) + os.sep, "<frozen ")  # noqa: PTH120 - as code objects have it
_INSTALLED = ("site-packages", "dist-packages")
_frame = sys._getframe


def watch(folder: Path) -> Callable[[], list[dict[str, Any]]]:
    """Begin to listen; the answer tells what the code in `folder` did so far, once a kind: `id`, `said`, `line`."""
    own, found, inside = str(folder) + os.sep, dict[tuple[str, str], dict[str, Any]](), threading.local()

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _EVENTS or getattr(inside, "hook", False):
            return
        inside.hook = True  # what is done here has events of its own
        try:
            said = next((os.fsdecode(one) for one in arguments if isinstance(one, (str, bytes))), "")
            id_, name = _EVENTS[event], event.rpartition(".")[2]
            if event == "object.__getattr__":
                id_, name = ("reads_frames" if said in _FRAMES else ""), said
            elif id_ == "writes_files":
                id_ = _of_a_file(said, event == "open" and arguments[2])
            frame = _of_the_candidate(_frame(1), own, name, id_) if id_ and (id_, event) not in found else None
            if frame is not None:
                line = frame.f_lineno if frame.f_code.co_filename.startswith(own) else 0
                shown = "" if own in said else said[:100]  # its own files have other names in each process
                words = " ".join([event, *shown.split()]).encode("utf-8", "replace").decode("utf-8")
                found[id_, event] = {"id": id_, "said": words, "line": line}
        finally:
            inside.hook = False

    sys.addaudithook(heard)
    return lambda: list(found.values())


def _of_a_file(path: str, flags: int) -> str:
    """The hazard of opening a file, or of listing a folder; "" where it is none."""
    with contextlib.suppress(OSError, ValueError):
        if _OF_PROCESSES.match(os.path.realpath(path)):
            return "scans_memory"
    return "writes_files" if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) else ""


def _of_the_candidate(frame: FrameType | None, own: str, name: str, id_: str) -> FrameType | None:
    """The frame of the candidate for which this was done; None where a library did it for itself.

    Files and programs are a library's where one other than Python's own asked for them. Of the rest it is a library's
    only if its text has the `name`: one that hands on a function, as `tree_map` does, does not name it.
    """
    searches, handed_on = id_ in ("scans_memory", "reads_frames") and name not in _LISTS, False
    while frame is not None:
        code, last = frame.f_code, frame
        file = code.co_filename
        if file.startswith(own):
            return frame
        if file.startswith(_EVALUATOR) or (file.startswith("<frozen importlib") and not searches):
            return None
        if not searches:
            standard = file.startswith(_STANDARD) and not any(folder in file for folder in _INSTALLED)
            if not file.startswith("<") and (not standard or id_ == "dynamic_code"):
                return None
        elif file == inspect.__file__:
            name = code.co_name
        elif not handed_on and name in code.co_names and (not file.startswith("<") or file.startswith("<frozen ")):
            return None
        else:
            handed_on = True
        frame = frame.f_back
    return last  # a thread that began in a library
