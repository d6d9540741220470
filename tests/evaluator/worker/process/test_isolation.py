"""What a sandbox reports where a layer is not to be had: each is named with the reason, and none takes the worker down.

Nothing here isolates the tests: system calls are replaced. What the layers hold is tried in `test_sandbox.py`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import struct
from pathlib import Path
from typing import Any

import pytest

from evaluator.worker.process import isolation
from evaluator.worker.process.isolation import Layer, Limits, Sandbox

LIMITS = Limits(memory=1 << 30, processes=7, file_size=1 << 20, limit_data=True)
NAMESPACES = ["pid namespace", "mount namespace", "ipc namespace", "network namespace"]
LANDLOCK = ["landlock files", "landlock tcp", "landlock signals"]


class System:
    """The system calls that a sandbox makes: written down, and failing where a test says so."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.refused: set[object] = set()
        """Names of functions, or (function, first argument), that fail with EPERM."""
        self.abi = 7
        """The kernel's version of landlock; below 1, it has none."""
        self.limits: dict[int, tuple[int, int]] = {}
        self.uid = 0
        self.rules: list[tuple[str, int]] = []
        patch.setattr(isolation, "LIBC", self)
        for name in ("setsid", "setgroups", "setresgid", "setresuid"):
            patch.setattr(isolation.os, name, lambda *words, name=name: self._change(name, *words))
        patch.setattr(isolation.os, "geteuid", lambda: self.uid)
        patch.setattr(isolation.os, "getegid", lambda: self.uid)
        patch.setattr(isolation.resource, "setrlimit", self._limit)
        patch.setattr(isolation.platform, "machine", lambda: "x86_64")

    def _fails(self, name: str, first: object = None) -> bool:
        return bool({name, (name, first)} & self.refused)

    def _change(self, name: str, *words: Any) -> None:
        self.calls.append((name, *words))
        if self._fails(name):
            raise PermissionError(errno.EPERM, "Operation not permitted")
        if name == "setresuid":
            self.uid = words[0]

    def _limit(self, kind: int, value: tuple[int, int]) -> None:
        if self._fails("setrlimit", kind):
            raise ValueError("not allowed to raise maximum limit")
        self.limits[kind] = value

    def _answer(self, name: str, *words: Any) -> int:
        self.calls.append((name, *words))
        if self._fails(name, words[0] if words else None):
            ctypes.set_errno(errno.EPERM)
            return -1
        return 0

    def unshare(self, flags: int) -> int:
        """unshare(2)."""
        return self._answer("unshare", flags)

    def mount(self, *words: Any) -> int:
        """mount(2)."""
        return self._answer("mount", *words)

    def prctl(self, option: int, *words: Any) -> int:
        """prctl(2)."""
        return self._answer("prctl", option, *(word.value for word in words))

    def syscall(self, number: int, *words: Any) -> int:
        """landlock_* and capset, by number."""
        if number == 444 and words[0] is None:
            return self.abi
        answer = self._answer("syscall", number, *words)
        return os.open(os.devnull, os.O_RDONLY) if number == 444 and answer == 0 else answer

    def made(self, name: str) -> list[tuple[Any, ...]]:
        """The words of every call of one function."""
        return [words for called, *words in self.calls if called == name]


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    """A system that does as it is told."""
    return System(monkeypatch)


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """A sandbox of which nothing is applied yet."""
    return Sandbox(str(tmp_path), (), 4242, LIMITS)


def layers(sandbox: Sandbox) -> dict[str, Layer]:
    """What became of each layer; each is told once."""
    assert len({layer.name for layer in sandbox.layers}) == len(sandbox.layers)
    return {layer.name: layer for layer in sandbox.layers}


def applied(sandbox: Sandbox) -> set[str]:
    """Names of the layers in force."""
    return {layer.name for layer in sandbox.layers if layer.applied}


# --- namespaces -------------------------------------------------------------------------------------------------------


def test_root_needs_no_user_namespace(system: System, sandbox: Sandbox) -> None:
    isolation.separate(sandbox)
    assert applied(sandbox) == set(NAMESPACES)
    assert [flags for (flags,) in system.made("unshare")] == [0x00020000, 0x08000000, 0x20000000, 0x40000000]


@pytest.mark.parametrize("name", ["mount", "ipc", "pid", "net"])
def test_a_namespace_that_is_refused_is_told_alone(system: System, sandbox: Sandbox, name: str) -> None:
    system.refused = {("unshare", isolation.CLONE[name])}
    isolation.separate(sandbox)
    full = "network namespace" if name == "net" else f"{name} namespace"
    assert layers(sandbox)[full] == Layer(full, False, "Operation not permitted")
    assert applied(sandbox) == set(NAMESPACES) - {full}


@pytest.fixture
def maps(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What is written into /proc/self."""
    written: dict[str, str] = {}

    def write(path: Path, text: str) -> int:
        assert path.parent == Path("/proc/self")
        written[path.name] = text
        return len(text)

    monkeypatch.setattr(isolation.Path, "write_text", write)
    return written


def test_a_user_gets_a_user_namespace_in_which_he_is_himself(
    system: System, sandbox: Sandbox, maps: dict[str, str]
) -> None:
    system.uid = 1000
    isolation.separate(sandbox)
    assert maps == {"setgroups": "deny", "uid_map": "1000 1000 1", "gid_map": "1000 1000 1"}
    assert next(iter(maps)) == "setgroups"  # else the kernel refuses gid_map
    assert applied(sandbox) == set(NAMESPACES)


def test_a_user_without_user_namespaces_gets_none(system: System, sandbox: Sandbox, maps: dict[str, str]) -> None:
    system.uid = 1000
    system.refused = {"unshare"}
    isolation.separate(sandbox)
    assert applied(sandbox) == set()
    assert {layer.detail for layer in sandbox.layers} == {"no user namespace: Operation not permitted"}
    assert sorted(layers(sandbox)) == sorted(NAMESPACES)
    assert maps == {}


def test_a_user_namespace_that_takes_no_users_is_none(
    system: System, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where AppArmor lets anybody make one, and nobody fill it."""

    def write(path: Path, text: str) -> int:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(path))

    monkeypatch.setattr(isolation.Path, "write_text", write)
    system.uid = 1000
    isolation.separate(sandbox)
    assert applied(sandbox) == set()
    assert {layer.detail for layer in sandbox.layers} == {
        "no user namespace: it takes no users: Operation not permitted"
    }
    assert len(system.made("unshare")) == 1


def test_a_loopback_that_cannot_be_switched_on_is_told(
    system: System, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.loopback = True

    def refuse(*_: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(isolation.fcntl, "ioctl", refuse)
    isolation.separate(sandbox)
    assert layers(sandbox)["network namespace"] == Layer(
        "network namespace", False, "no loopback: Operation not permitted"
    )


# --- /proc ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "mount", "refused", "layer"),
    [
        (False, True, set(), Layer("private /proc", False, "no PID namespace")),
        (True, False, set(), Layer("private /proc", False, "no mount namespace")),
        (True, True, {"mount"}, Layer("private /proc", False, "Operation not permitted")),
        (True, True, set(), Layer("private /proc", True, "")),
    ],
)
def test_a_private_proc_needs_both_namespaces(
    system: System,
    sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    first: bool,
    mount: bool,
    refused: set[object],
    layer: Layer,
) -> None:
    """Without a mount namespace of its own, the worker's /proc would cover everybody's."""
    monkeypatch.setattr(isolation, "in_new_pid_namespace", lambda: first)
    sandbox.note("mount namespace", mount)
    system.refused = refused
    isolation.private_proc(sandbox)
    assert layers(sandbox)["private /proc"] == layer
    if not (first and mount):
        assert system.made("mount") == []


# --- landlock ---------------------------------------------------------------------------------------------------------


def handled(system: System) -> tuple[int, ...]:
    """The rights that the ruleset governs: files, TCP, scopes, as far as the kernel's version has them."""
    attributes = next(words[1] for words in system.made("syscall") if words[0] == 444)
    return struct.unpack(f"={len(attributes) // 8}Q", attributes)


@pytest.mark.parametrize(
    ("abi", "loopback", "expected", "governed"),
    [
        (1, False, {"landlock files"}, (0x1FFF,)),
        (2, False, {"landlock files"}, (0x3FFF,)),
        (3, False, {"landlock files"}, (0x7FFF,)),
        (4, False, {"landlock files", "landlock tcp"}, (0x7FFF, 3)),
        (5, False, {"landlock files", "landlock tcp"}, (0xFFFF, 3)),
        (6, False, set(LANDLOCK), (0xFFFF, 3, 3)),
        (7, False, set(LANDLOCK), (0xFFFF, 3, 3)),
        (7, True, {"landlock files", "landlock signals"}, (0xFFFF, 0, 3)),
    ],
)
def test_each_version_of_landlock_holds_what_it_can(
    system: System, sandbox: Sandbox, abi: int, loopback: bool, expected: set[str], governed: tuple[int, ...]
) -> None:
    system.abi, sandbox.loopback = abi, loopback
    assert isolation.restrict_files(sandbox)
    assert sorted(layers(sandbox)) == sorted(LANDLOCK)
    assert applied(sandbox) == expected
    assert handled(system) == governed
    assert all(layer.applied or layer.detail for layer in sandbox.layers)


@pytest.mark.parametrize("abi", [0, -1])
def test_a_kernel_without_landlock(system: System, sandbox: Sandbox, abi: int) -> None:
    system.abi = abi
    assert not isolation.restrict_files(sandbox)
    assert layers(sandbox) == {name: Layer(name, False, "this kernel has no landlock") for name in LANDLOCK}


@pytest.mark.parametrize("call", [444, 446])
def test_a_refused_ruleset_leaves_nothing_untold(system: System, sandbox: Sandbox, call: int) -> None:
    system.refused = {("syscall", call)}
    assert not isolation.restrict_files(sandbox)
    assert layers(sandbox) == {name: Layer(name, False, "Operation not permitted") for name in LANDLOCK}


def rules(system: System) -> dict[str, int]:
    """Path → rights of every rule; paths are read back from the descriptors while they were open."""
    return dict(system.rules)


@pytest.fixture
def watched(system: System, monkeypatch: pytest.MonkeyPatch) -> System:
    """A system that keeps the path of each rule."""
    original = system.syscall

    def syscall(number: int, *words: Any) -> int:
        if number == 445:
            rights, opened = struct.unpack("=Qi", words[2])
            system.rules.append((str(Path(f"/proc/self/fd/{opened}").readlink()), rights))
        return original(number, *words)

    monkeypatch.setattr(system, "syscall", syscall, raising=False)
    return system


def test_it_may_write_its_own_folder_and_no_other(watched: System, sandbox: Sandbox, tmp_path: Path) -> None:
    outside = tmp_path.parent / "readable"
    outside.mkdir(exist_ok=True)
    sandbox.readable = (str(outside), "/nowhere/at/all")
    isolation.restrict_files(sandbox)
    found = rules(watched)
    make_and_remove = 0x1FFF & ~(1 | 2 | 4 | 8)
    assert found[str(tmp_path)] == 0xFFFF
    assert found[str(outside)] == isolation.FS_READ
    assert found["/usr"] == isolation.FS_READ
    assert [path for path, rights in found.items() if rights & make_and_remove] == [str(tmp_path)]
    writable = [path for path, rights in found.items() if rights & isolation.FS_WRITE_FILE]
    assert all(path.startswith("/dev/") or path in ("/proc", str(tmp_path)) for path in writable)
    assert not {"/", "/etc", "/home", "/root", "/tmp", "/var", "/dev", "/run"} & set(found)


def test_a_rule_on_a_file_grants_nothing_that_only_folders_have(watched: System, tmp_path: Path) -> None:
    """landlock refuses a rule on a file that names a folder's rights, and the file would stay closed."""
    file = tmp_path / "file"
    file.write_text("x")
    isolation.allow_path(0, str(file), 0xFFFF)
    isolation.allow_path(0, str(tmp_path), 0xFFFF)
    assert rules(watched) == {str(file): isolation.FS_FILE, str(tmp_path): 0xFFFF}


def test_a_path_that_cannot_be_opened_gets_no_rule(watched: System, tmp_path: Path) -> None:
    isolation.allow_path(0, str(tmp_path / "nothing"), 0xFFFF)
    assert rules(watched) == {}


def test_paths_that_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nvidia0", "nvidiactl", "null"):
        (tmp_path / name).write_text("")
    assert sorted(isolation.matching(f"{tmp_path}/nvidia*")) == [f"{tmp_path}/nvidia0", f"{tmp_path}/nvidiactl"]
    assert isolation.matching(f"{tmp_path}/null") == [f"{tmp_path}/null"]
    assert isolation.matching(f"{tmp_path}/none") == []
    assert isolation.matching(f"{tmp_path}/none/nvidia*") == []
    assert isolation.matching(f"{tmp_path}/fuse*") == []

    def closed(_: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(isolation.Path, "exists", closed)  # as below a folder that is closed to this user
    assert isolation.matching(f"{tmp_path}/null") == []
    assert isolation.matching(f"{tmp_path}/nvidia*") == []
    assert list(isolation.interpreter_folders()) == []


def test_a_folder_is_open_to_others_if_all_above_it_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    for folder in (tmp_path.parent.parent, tmp_path.parent, tmp_path, inner.parent, inner):
        folder.chmod(0o755)
    try:
        above = isolation.open_to_others(str(tmp_path))
        assert isolation.open_to_others(str(inner)) == above
        inner.parent.chmod(0o700)
        assert not isolation.open_to_others(str(inner))
    finally:
        for folder in (tmp_path.parent.parent, tmp_path.parent):
            folder.chmod(0o700)
    assert not isolation.open_to_others(str(tmp_path))


# --- user, capabilities, limits ---------------------------------------------------------------------------------------


def test_root_becomes_the_sandboxes_user_and_keeps_nothing(system: System, sandbox: Sandbox) -> None:
    isolation.drop_privileges(sandbox, keep_reading=False)
    assert layers(sandbox)["unprivileged user"] == Layer("unprivileged user", True, "")
    assert [call for call in system.calls if call[0].startswith("set")] == [
        ("setgroups", []),
        ("setresgid", 4242, 4242, 4242),
        ("setresuid", 4242, 4242, 4242),
    ]
    (capset,) = system.made("syscall")
    assert struct.unpack("=IIIIII", capset[2]) == (0, 0, 0, 0, 0, 0)


def test_one_capability_stays_where_the_interpreter_is_closed_to_others(system: System, sandbox: Sandbox) -> None:
    isolation.drop_privileges(sandbox, keep_reading=True)
    read = 1 << isolation.CAP_DAC_READ_SEARCH
    (capset,) = system.made("syscall")
    assert struct.unpack("=IIIIII", capset[2]) == (read, read, read, 0, 0, 0)
    assert "keeps the right to read" in layers(sandbox)["unprivileged user"].detail
    assert [words[0] for words in system.made("prctl")] == [isolation.PR_SET_KEEPCAPS, isolation.PR_CAP_AMBIENT]


@pytest.mark.parametrize("refused", ["setgroups", "setresgid", "setresuid"])
def test_a_namespace_that_knows_no_other_user_is_told(system: System, sandbox: Sandbox, refused: str) -> None:
    """As in a rootless container."""
    system.refused = {refused}
    isolation.drop_privileges(sandbox, keep_reading=False)
    assert layers(sandbox)["unprivileged user"] == Layer(
        "unprivileged user", False, "this user namespace has no other: Operation not permitted"
    )


def test_a_user_stays_who_he_is_and_drops_capabilities(system: System, sandbox: Sandbox) -> None:
    system.uid = 1000
    isolation.drop_privileges(sandbox, keep_reading=True)
    assert layers(sandbox)["unprivileged user"] == Layer("unprivileged user", True, "already one")
    assert system.made("setresuid") == []
    assert len(system.made("syscall")) == 1


def test_root_that_is_not_asked_to_change_is_told(system: System, sandbox: Sandbox) -> None:
    sandbox.uid = 0
    isolation.drop_privileges(sandbox, keep_reading=False)
    assert layers(sandbox)["unprivileged user"] == Layer("unprivileged user", False, "not asked for")


def test_capabilities_on_an_unknown_machine_are_told(
    system: System, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation.platform, "machine", lambda: "riscv64")
    isolation.drop_privileges(sandbox, keep_reading=False)
    assert "cannot be set on riscv64" in layers(sandbox)["unprivileged user"].detail


def test_limits_are_set_for_good(system: System, sandbox: Sandbox) -> None:
    sandbox.note("unprivileged user", True)
    isolation.set_limits(sandbox)
    assert layers(sandbox)["resource limits"] == Layer("resource limits", True, "")
    ceiling = {kind: resource.getrlimit(kind)[1] for kind in system.limits}
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 1 << 20,
        resource.RLIMIT_NPROC: isolation.MOST_THREADS,
        resource.RLIMIT_NOFILE: 4096,
        resource.RLIMIT_DATA: 1 << 30,
    }
    below = {k: v if ceiling[k] == resource.RLIM_INFINITY else min(v, ceiling[k]) for k, v in wanted.items()}
    assert system.limits == {kind: (value, value) for kind, value in below.items()}


def test_a_hard_limit_that_is_lower_is_not_raised(
    system: System, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation.resource, "getrlimit", lambda _: (3, 3))
    sandbox.note("unprivileged user", True)
    isolation.set_limits(sandbox)
    assert {value for value, _ in system.limits.values()} == {0, 3}


def test_memory_is_limited_only_where_it_is_asked_for(system: System, sandbox: Sandbox) -> None:
    sandbox.limits = Limits(memory=1 << 30, processes=7, file_size=1, limit_data=False)
    isolation.set_limits(sandbox)
    assert resource.RLIMIT_DATA not in system.limits


def test_a_limit_that_is_refused_is_told_and_the_others_hold(system: System, sandbox: Sandbox) -> None:
    system.refused = {("setrlimit", resource.RLIMIT_FSIZE)}
    isolation.set_limits(sandbox)
    assert layers(sandbox)["resource limits"] == Layer("resource limits", False, "not allowed to raise maximum limit")
    assert resource.RLIMIT_DATA in system.limits


@pytest.mark.parametrize(
    ("uid", "own", "user", "namespace", "release", "limited"),
    [
        (0, 4242, True, True, "6.1.0", True),
        (0, 4242, False, True, "6.1.0", False),
        (1000, 0, True, True, "6.1.0", True),
        (1000, 0, True, True, "5.14.0-503.el9", True),
        (1000, 0, True, True, "5.13.19", False),
        (1000, 0, True, True, "4.18.0-553.el8", False),
        (1000, 0, True, False, "6.1.0", False),
    ],
)
def test_processes_are_limited_only_where_the_users_others_do_not_count(
    system: System,
    sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    uid: int,
    own: int,
    user: bool,
    namespace: bool,
    release: str,
    limited: bool,
) -> None:
    """RLIMIT_NPROC counts all that a user runs: a desktop has more than a worker may, and no thread could start."""
    monkeypatch.setattr(isolation.platform, "release", lambda: release)
    system.uid, sandbox.uid = uid, own
    sandbox.note("unprivileged user", user)
    sandbox.note("pid namespace", namespace)
    isolation.set_limits(sandbox)
    assert (resource.RLIMIT_NPROC in system.limits) is limited
    assert layers(sandbox)["resource limits"].applied
    assert ("watchdog" in layers(sandbox)["resource limits"].detail) is not limited


def test_confining_reports_every_layer(system: System, sandbox: Sandbox) -> None:
    isolation.confine(sandbox)
    assert applied(sandbox) == {*LANDLOCK, "no new privileges", "unprivileged user", "resource limits"}


def test_confining_goes_on_where_nothing_is_to_be_had(system: System, sandbox: Sandbox) -> None:
    system.abi = -1
    system.refused = {"prctl", "setgroups", "setrlimit"}
    isolation.confine(sandbox)
    assert applied(sandbox) == set()
    assert len(layers(sandbox)) == 6
    assert all(layer.detail for layer in sandbox.layers)
