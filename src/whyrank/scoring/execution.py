"""Who puts the batches to the ranker: this process, or several."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from whyrank.core import Ranker, Registry
from whyrank.scoring.asking import Answer, Task, answer

Answers = Generator[Answer, None, None]


@runtime_checkable
class Executor(Protocol):
    """Runs batches and gives each answer as it completes; closing the generator ends all work."""

    def run(self, ranker: Ranker, tasks: Iterator[Task]) -> Answers:
        """Answer all tasks, in any order; a task is drawn only when it can be worked on at once."""
        ...


@dataclass(frozen=True)
class SerialExecutor:
    """Scores one batch after the other in this process."""

    def run(self, ranker: Ranker, tasks: Iterator[Task]) -> Answers:
        """Answer the tasks in their order."""
        for task in tasks:
            yield answer(ranker, task)


executors: Registry[Executor] = Registry(
    "executors",
    "executor",
    {
        "serial": "whyrank.scoring.execution:SerialExecutor",
        "processes": "whyrank.scoring.processes:ProcessExecutor",
    },
)


def executor(name: str) -> Executor:
    """The executor of a name or call string: `serial`, `processes`, `processes(workers=4)`."""
    return executors.create(name)
