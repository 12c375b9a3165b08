"""What can be asked of a tap over HTTP: its addresses, and the faults and requests as of a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kwire.broker.control.routes import ROUTES, Route

if TYPE_CHECKING:
    from kwire.tap.tap import Tap

__all__ = ["TAP_ROUTES"]


def show_tap(tap: Tap, _values: dict[str, Any]) -> object:
    """Return the addresses."""
    nodes = [each._asdict() for each in tap.nodes]
    return {"bootstrap_servers": tap.bootstrap_servers, "to": tap.to, "nodes": nodes, "openapi": "/openapi.json"}


TAP_ROUTES = (
    Route("GET", "/", show_tap, "Addresses of the tap and of the nodes behind it"),
    *(each for each in ROUTES if each.path.startswith(("/faults", "/requests"))),
)
