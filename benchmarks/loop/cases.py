"""Runs the cases of docs/cases that are named here, each with a GPU to itself, and packs what they kept. Resumable.

    python benchmarks/loop/cases.py --out FOLDER [--only gemm attention rmsnorm] [--seconds LIMIT]

Cases of one line of `LINES` run one after another, lines side by side where there are as many GPUs. Nothing begins
where `kopt --version` fails. FOLDER gets the runs, a KOPT_HOME and a log for each, and for each that has ended
`NAME.tgz`, without `.git` and reports of ncu above 1 MB; such a case is not repeated, and one that was cut off is
gone on with. In the last `RESERVE` of its seconds a case begins no further step, and ends its run. Receipts hold the
path of FOLDER and of this checkout: start a copy that stands where anyone may know of it. `--rehearse` does the same on
the CPU, small, without the case in CUDA.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINES = (("gemm",), ("attention", "rmsnorm"))
START = {
    "gemm": ("--restarts", "2", "--seconds", "2", "--baselines", "eager"),
    "attention": ("--restarts", "5", "--seconds", "3", "--baselines", "eager"),
    "rmsnorm": ("--restarts", "5", "--seconds", "3", "--baselines", "eager,compile"),
}
"""What `kopt run start` is told. nvcc runs in each process of a .cu kernel, so that case has fewer of them."""
SMALL = {"attention": "BATCH=1,HEADS=2,LENGTH=128,DIM=64", "rmsnorm": "ROWS=8,COLUMNS=2048"}
RESERVE = 75.0
"""Seconds for the step under way and the end of a run."""
LARGEST = 1_000_000
"""Bytes of a report of ncu that is kept."""


def main() -> int:
    """Run what has not ended."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--out", type=Path, required=True)
    words.add_argument("--only", nargs="*", default=list(START), choices=list(START))
    words.add_argument("--seconds", type=float, default=540.0)
    words.add_argument("--rehearse", action="store_true")
    options = words.parse_args()
    out, end = options.out.absolute(), time.monotonic() + options.seconds
    out.mkdir(parents=True, exist_ok=True)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    if subprocess.run([sys.executable, "-m", "kopt", "--version"], check=False).returncode:
        print("kopt itself does not run here: nothing was begun", flush=True)
        return 1
    lines = [[name for name in line if name in options.only] for line in LINES]
    gpus = 1 if options.rehearse else count()
    if gpus < len(lines):
        lines = [[name for line in lines for name in line]]

    def in_turn(number: int) -> bool:
        left = lines[number]
        done = [one(name, out, end, number, len(left) - at, options.rehearse) for at, name in enumerate(left)]
        return all(done)

    with ThreadPoolExecutor(len(lines)) as pool:
        return 0 if all(list(pool.map(in_turn, range(len(lines))))) else 1


def count() -> int:
    """The GPUs of this machine."""
    import torch

    return torch.cuda.device_count()


def one(name: str, out: Path, end: float, gpu: int, waiting: int, rehearse: bool) -> bool:
    """Run a case in its share of the time that is left for `waiting` cases, and pack it; whether it is packed."""
    packed = out / f"{name}.tgz"
    if packed.exists() or (rehearse and name not in SMALL):
        return True
    seconds = (end - time.monotonic()) / waiting
    if seconds < RESERVE:
        print(f"{name}: no time is left", flush=True)
        return False
    where = ("--gpu", "h100-sxm", "--dims", SMALL[name]) if rehearse else ()
    case = ("benchmarks/loop/case.py", f"docs/cases/{name}", str(out / name), "--seconds", str(seconds - RESERVE))
    more = ("--device", "cpu") if rehearse else ()
    with (out / f"{name}.log").open("a", encoding="utf-8") as log:
        try:
            done = subprocess.run(
                [sys.executable, *case, *more, "--", "--branches", "1", *START[name], *where],
                cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, check=False, timeout=max(1.0, end - time.monotonic()),
                env={**os.environ, "CUDA_VISIBLE_DEVICES": str(gpu), "KOPT_HOME": str(out / f"home-{name}")},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            print(f"{name}: out of time: start it again", flush=True)
            return False
    print(f"{name}: {done.returncode}\n{(out / f'{name}.log').read_text('utf-8')[-1500:]}", flush=True)
    if done.returncode == 0:
        pack(out / name, packed)
    return done.returncode == 0


def pack(folder: Path, packed: Path) -> None:
    """What a case kept, as an archive."""

    def chosen(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        large = entry.name.endswith(".ncu-rep") and entry.size > LARGEST
        return None if ".git" in Path(entry.name).parts or large else entry

    part = packed.with_suffix(".part")
    with tarfile.open(part, "w:gz") as archive:
        archive.add(folder, arcname=folder.name, filter=chosen)
    part.rename(packed)


if __name__ == "__main__":
    sys.exit(main())
