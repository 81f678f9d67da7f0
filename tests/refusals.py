"""What a refused command says."""

from __future__ import annotations

import re


def one_line(result: tuple[int, str, str]) -> str:
    """The error of a wrong request: exit code 2, one line, nothing on standard output."""
    code, out, err = result
    err = re.sub(r"\A(note: .*\n)+", "", err)  # what is odd in a collection is said before
    assert code == 2, err
    assert out == ""
    assert err.startswith("whyrank: ")
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    return err
