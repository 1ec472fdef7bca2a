"""The table of offline kinds, and the routes to keys of each kind of overlay."""

from importlib import import_module
from typing import Any

from topologies.overlays.dissemination import OfflinePubsub
from topologies.overlays.key_routes import KeyRoutes
from topologies.overlays.offline_overlay import OfflineOverlay
from topologies.overlays.overlay import Overlay

# Loaded when they are needed.
OVERLAYS: dict[str, str] = {
    "ring": "topologies.overlays.ring.Ring",
    "small-world": "topologies.overlays.small_world.SmallWorld",
    "beaconvey": "topologies.overlays.beaconvey.BeaConveyOverlay",
    "pastry": "topologies.overlays.pastry.Pastry",
    "skip-net": "topologies.overlays.skip_net.SkipNet",
}
PUBSUBS: dict[str, str] = {
    "scribe": "topologies.overlays.scribe.Scribe",
    "iscribe": "topologies.overlays.scribe.InverseScribe",
    "nsmf": "topologies.overlays.nsmf.Nsmf",
    "beaconvey": "topologies.overlays.nsmf.BeaConvey",
}
# Any other overlay routes by position.
ROUTES: dict[str, str] = {
    "pastry": "topologies.overlays.pastry_routes.PastryRoutes",
    "skip-net": "topologies.overlays.skip_net.SkipNetRoutes",
}
_BY_POSITION = "topologies.overlays.position_routes.PositionRoutes"


def find_overlay(kind: str) -> type[OfflineOverlay]:
    """The overlay of this kind."""
    found: type[OfflineOverlay] = _load(OVERLAYS[kind])
    return found


def find_pubsub(kind: str) -> type[OfflinePubsub]:
    """The publish/subscribe of this kind."""
    found: type[OfflinePubsub] = _load(PUBSUBS[kind])
    return found


def key_routes(overlay: Overlay) -> KeyRoutes:
    """The routes of an overlay: by identifier if its kind does so, else by position."""
    routes: KeyRoutes = _load(ROUTES.get(overlay.kind or "", _BY_POSITION))(overlay)
    return routes


def _load(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)
