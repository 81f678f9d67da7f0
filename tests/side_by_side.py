"""Work at the same time, in threads and in process groups."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from subprocess import Popen


def in_threads(work: Callable[[int], object], count: int) -> list[BaseException]:
    """Call `work(0)`, `work(1)`, ... at the same time; gives what was raised."""
    problems: list[BaseException] = []

    def guarded(n: int) -> None:
        try:
            work(n)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return problems


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.005)


def group_is_gone(process: Popen) -> bool:
    """Whether no process is left of the group that a process leads."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return True
    return False
