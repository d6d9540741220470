"""The process that measures on one device of this machine: a task on each line of its input, an answer on each of its
output. It ends with its parent."""

from __future__ import annotations

import os
import queue
import sys
import threading

from kopt.services.runs.devices.task import carry_out


def main() -> None:
    """Answer until the input ends. What libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    asked: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            asked.put(line)
        os._exit(0)  # the parent is gone, or does not want what is under way

    threading.Thread(target=read, daemon=True).start()
    while True:
        answers.write(f"{carry_out(asked.get())}\n")
        answers.flush()
