"""What becomes of a crew of workers, told as JSON by a process of its own: workers are forks of it, threads and all."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "translation"))

from workers import TRIES, Crew


def crew(do: Callable, leave: Callable = lambda: None) -> Crew:
    return Crew(do, lambda job: job, leave)


def goodbye(folder: Path) -> Callable[[], object]:
    return lambda: (folder / str(os.getpid())).write_text("left")


def tried_again(folder: Path) -> dict:
    """One job raises, one kills its worker, one kills its first worker only."""

    def do(job: str) -> str:
        with open(folder / job, "a") as file:
            file.write("x")
        if job == "raises":
            raise ValueError("no")
        if job == "dies":
            os._exit(9)
        if job == "dies once" and len((folder / job).read_text()) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return "well"

    told: list[list[str]] = []
    jobs = ["raises", "dies", "a", "dies once", "b"]
    left = crew(do).run(jobs, 2, 30, lambda job, text: told.append([job, text.split(":")[0]]))
    return {
        "told": told,
        "left": left,
        "tries": TRIES,
        "tried": {job: len((folder / job).read_text()) for job in jobs},
    }


def asked_to_leave(folder: Path) -> dict:
    """The time is over while two workers are in the middle of long jobs."""

    def do(job: int) -> str:
        if job:
            time.sleep(60)
        return "well"

    begin, told, workers = time.monotonic(), [], crew(do, goodbye(folder))
    left = workers.run([0, 1, 2, 3], 2, 1.5, lambda job, text: told.append([job, text]))
    return {"told": told, "left": left, "seconds": time.monotonic() - begin, "ends": workers.ends}


def asked_at_once(folder: Path) -> dict:
    """The time is over before a worker is ready, five times, or even before it is hired."""
    ends: dict[int, int | None] = {}
    for _ in range(5):
        workers = crew(lambda job: time.sleep(60), goodbye(folder))
        assert workers.run([1], 1, 1e-3, lambda job, text: None) == [1]
        ends |= workers.ends
    return {"ends": ends}


def in_time(folder: Path) -> dict:
    """Each job takes a second, and there is time for nearly three."""

    def do(job: str) -> str:
        time.sleep(1.0)
        return "well"

    done: list[str] = []
    left = Crew(do, lambda job: job[0], lambda: None).run(["a1", "a2", "a3"], 1, 2.9, lambda job, _: done.append(job))
    return {"done": done, "left": left}


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a process in the background may ignore
    print(json.dumps(globals()[sys.argv[1]](Path(sys.argv[2]))))
