"""A worker process from the inside: it keeps the rankers that it was sent, and answers tasks."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from multiprocessing.connection import Connection
from typing import NamedTuple

from whyrank.core import Ranker, WhyrankError
from whyrank.scoring.asking import Task, answer, one_line, reason_of


class Load(NamedTuple):
    """Announces a ranker: its bytes follow."""

    name: str


class Order(NamedTuple):
    """A task for a ranker that was sent before."""

    name: str
    task: Task


def serve(pipe: Connection) -> None:
    """The life of a worker: load rankers and answer tasks until the parent closes the pipe."""
    _ignore_interrupts()
    threading.Thread(target=_die_with_parent, daemon=True).start()
    held: dict[str, Ranker] = {}
    try:
        while True:
            asked = pipe.recv()
            if isinstance(asked, Load):
                held.pop(asked.name, None)  # an older state of it, which would take room beside the new one
                held[asked.name] = _loaded(asked.name, pipe.recv_bytes())
                pipe.send("ready")
            else:
                pipe.send(answer(held[asked.name], asked.task))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the parent closed the pipe, or is gone
    except BaseException as error:
        pipe.send(_portable(error))


def _ignore_interrupts() -> None:
    """Ctrl-C reaches the whole group; the parent, which blocked it for our start, ends us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _loaded(name: str, payload: bytes) -> Ranker:
    try:
        ranker: Ranker = pickle.loads(payload)
    except WhyrankError:
        raise
    except Exception as error:
        raise WhyrankError(
            f"ranker {name!r} cannot be loaded in another process ({one_line(reason_of(error))}); "
            "use the serial executor"
        ) from error
    return ranker


def _portable(error: BaseException) -> BaseException:
    """The error itself where it survives the way to the parent, else one with the same message."""
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:
        copy = None
    return copy if type(copy) is type(error) else WhyrankError(str(error))
