"""The web explorer: an audit in the browser, with live scores of whatever one types."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.explorer.app import make_app
    from whyrank.explorer.live import Explorer, Texts
    from whyrank.explorer.server import bind, serve

front_door(__name__)
