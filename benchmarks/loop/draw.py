"""Draws further problems of KernelBench for the search, at random: ten of level 1 and five of level 2.

    python benchmarks/loop/draw.py KERNELBENCH --out FOLDER [--seed 21]

KERNELBENCH: a checkout's folder `KernelBench`, with `level1` and `level2`. Drawn from are the problems whose number
ends in 1, 2, 3 or 5, without convolutions, pooling and the seven that `search_starts.py` has; the others stay unseen.
FOLDER gets the files that were drawn, as they are; the seed and the names are printed.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.loop.search_starts import STARTS  # noqa: E402  # ROOT must be on the path first

COUNTS = {"level1": 10, "level2": 5}
_WITHOUT = re.compile(r"conv|pool", re.IGNORECASE)


def drawn(folder: Path, seed: int) -> dict[str, list[Path]]:
    """Level → files. Raises `FileNotFoundError` where a level is missing."""
    found = {}
    for level, count in COUNTS.items():
        names = [path for path in (folder / level).iterdir() if re.match(r"\d*[1235]_\w+\.py$", path.name)]
        names = [path for path in names if not _WITHOUT.search(path.name) and path.stem not in STARTS]
        names.sort(key=lambda path: int(path.name.partition("_")[0]))
        some = random.Random(f"{seed} {level}").sample(names, count)
        found[level] = sorted(some, key=lambda path: int(path.name.partition("_")[0]))
        print(f"{level}: {count} of {len(names)} with seed {seed}: {', '.join(path.stem for path in found[level])}")
    return found


def main() -> int:
    """Draw, and copy."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("kernelbench", type=Path)
    words.add_argument("--out", type=Path, required=True)
    words.add_argument("--seed", type=int, default=21)
    options = words.parse_args()
    for level, files in drawn(options.kernelbench, options.seed).items():
        (options.out / level).mkdir(parents=True, exist_ok=True)
        for path in files:
            shutil.copyfile(path, options.out / level / path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
