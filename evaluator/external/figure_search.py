"""Search lines for patterns in a process of its own, which can be killed if a pattern never finishes.

Standard library only. stdin: one JSON object, `{"patterns": [regex], "streams": [[line]], "most": int}`. stdout: for
each pattern, as soon as it is done, one JSON list of `[stream, line, start, end]` of its group, all counted from 0.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Iterator


def places(pattern: str, streams: list[list[str]]) -> Iterator[tuple[int, int, int, int]]:
    """Every place of the pattern's first group, line by line."""
    compiled = re.compile(pattern)
    for stream, lines in enumerate(streams):
        for number, line in enumerate(lines):
            for match in compiled.finditer(line):
                if match.start(1) >= 0:
                    yield stream, number, match.start(1), match.end(1)


def main() -> None:
    """Answer what is asked on stdin."""
    warnings.simplefilter("ignore")  # re warns of patterns that may mean something else one day
    asked = json.load(sys.stdin)
    for pattern in asked["patterns"]:
        found = [place for _, place in zip(range(asked["most"]), places(pattern, asked["streams"]), strict=False)]
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
