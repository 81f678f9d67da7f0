"""Which tests of a contract an object fails."""

from __future__ import annotations


def failures(contract: type, make, *only: str) -> set[str]:
    """Names of the tests of a contract, or of some of them, that an object fails."""
    case = type("Case", (contract,), {"make": staticmethod(make)})()
    return {name for name in only or names_in(contract) if not passes(getattr(case, name))}


def passes(test) -> bool:
    try:
        test()
    except Exception:
        return False
    return True


def names_in(contract: type) -> set[str]:
    return {name for name in dir(contract) if name.startswith("test_")}
