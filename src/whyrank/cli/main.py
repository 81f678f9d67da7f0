"""The entry point: errors and Ctrl-C end with one clear line, from the first import on."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from types import FrameType

INTERRUPTED = 130


class Interruption:
    """Ctrl-C as an exception, remembered: what is being imported may turn it into an error of its own."""

    def __init__(self) -> None:
        """Nothing is heard yet."""
        self.seen = False
        self._before: Any = None

    def __enter__(self) -> Interruption:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else someone listens or it is ignored
            self._before = sys.unraisablehook
            signal.signal(signal.SIGINT, self)
            sys.unraisablehook = self.unraisable
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            sys.unraisablehook = self._before
            # who presses it again while threads end wants no traceback
            signal.signal(signal.SIGINT, signal.SIG_DFL if self.seen else signal.default_int_handler)

    def __call__(self, number: int, frame: FrameType | None) -> NoReturn:
        """Handle the signal."""
        self.seen = True
        raise KeyboardInterrupt

    def unraisable(self, problem: Any) -> None:
        """Raise Ctrl-C again, a little later, where Python drops it: in a callback of the garbage collector."""
        if not issubclass(problem.exc_type, KeyboardInterrupt):
            self._before(problem)
            return
        import threading

        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()  # to the thread that may be waiting


def main() -> None:
    """Run the command line; a wrong request or input ends with one line and exit code 2."""
    code: Any = INTERRUPTED  # the option parser turns Ctrl-C into this code too
    with Interruption() as interruption:
        try:
            code = _run()
        except KeyboardInterrupt:
            pass
        except BrokenPipeError:
            sys.stderr.close()
            code = 0
        except Exception as error:
            if not interruption.seen:
                _stop(*_error_line(error))
    if code == INTERRUPTED:
        from whyrank.cli.console import stop_line

        _stop(stop_line(), INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _run() -> Any:
    from whyrank.cli.app import app

    if len(sys.argv) == 1:
        sys.argv.append("--help")
    return app(prog_name="whyrank", standalone_mode=False)


def _error_line(error: Exception) -> tuple[str, int]:
    """A wrong request or input, a wrong option, a file that cannot be read or written, or a fault of ours."""
    from whyrank.core import WhyrankError

    if isinstance(error, WhyrankError):
        return str(error), 2
    if hasattr(error, "format_message"):  # what the option parser raises
        command = getattr(getattr(error, "ctx", None), "command_path", "whyrank")
        return f"{error.format_message().rstrip('.')}; see '{command} --help'", 2
    if isinstance(error, OSError):
        return f"{error.filename or 'a file could not be read or written'}: {error.strerror or error}", 2
    if os.environ.get("WHYRANK_DEBUG"):
        raise error
    kind = type(error).__name__
    return f"internal error: {kind}: {error}; set WHYRANK_DEBUG=1 for the details and please report it", 70


def _stop(message: str, code: int) -> NoReturn:
    from whyrank.core import printable

    print("whyrank: " + printable(" ".join(message.split("\n"))), file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
