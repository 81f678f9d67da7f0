"""Scores for pairs of texts: each distinct pair once, batched, stored, in one process or several."""

from whyrank.scoring.asking import Failure
from whyrank.scoring.engine import Engine, Scores
from whyrank.scoring.executors import Executor, SerialExecutor, executor, executors
from whyrank.scoring.processes import ProcessExecutor
from whyrank.scoring.store import ScoreStore

__all__ = [
    "Engine",
    "Executor",
    "Failure",
    "ProcessExecutor",
    "ScoreStore",
    "Scores",
    "SerialExecutor",
    "executor",
    "executors",
]
