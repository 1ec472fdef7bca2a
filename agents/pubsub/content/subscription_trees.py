"""All versions of the tree at one peer, and its own subscriptions, which are in all of them."""

from agents.protocol import PeerId
from agents.pubsub.content.box_index import BoxIndex
from agents.pubsub.content.cover_table import LOCAL
from agents.pubsub.content.subscription_tree import ContentTree
from agents.routing.tree import Tree
from workloads.content.subscription import Point, Subscription

_MOST_UNKNOWN = 4  # versions that neighbours mention and routing has not announced yet


class ContentTrees:
    """Versions by number; subscriptions made before `start_us` match events from the first on."""

    def __init__(self, start_us: int, boxes: BoxIndex, is_merging: bool = False) -> None:
        self._start_us = start_us
        self._boxes = boxes
        self._is_merging = is_merging
        self._own: dict[Subscription, int] = {}  # and since when, in microseconds
        self._versions: dict[int, ContentTree] = {}
        self._dropped: set[int] = set()
        self._family_of: dict[int, int] = {}  # of all versions that were ever announced
        self._heirs: dict[int, int] = {}  # the highest announced version of each family

    def __len__(self) -> int:
        """The number of known versions."""
        return len(self._versions)

    def get(self, number: int) -> ContentTree | None:
        """A version, if it is known."""
        return self._versions.get(number)

    def linked(self, number: int, peer: PeerId) -> ContentTree | None:
        """A version, if it links this peer to another one."""
        version = self._versions.get(number)
        return version if version is not None and version.has_link(peer) else None

    def is_linked(self, peer: PeerId) -> bool:
        """Whether any version links this peer to another one."""
        return any(version.has_link(peer) for version in self._versions.values())

    def announced(self) -> list[ContentTree]:
        """The versions that routing has announced, the oldest first."""
        return [v for _, v in sorted(self._versions.items()) if v.built_us is not None]

    def follow(self, tree: Tree) -> ContentTree | None:
        """The version that routing announces, unless it is dropped."""
        if tree.is_dropped:
            self._drop(tree.version)
            return None
        version = self.make(tree.version)
        if version is not None:
            version.built_us = tree.built_us
            version.family = self._family_of[tree.version] = tree.family or tree.version
            self._heirs[version.family] = max(tree.version, self._heirs.get(version.family, 0))
        return version

    def has_heirs(self, number: int) -> bool:
        """Whether there is a family newer than that of a version."""
        return max(self._heirs, default=0) > self._family_of.get(number, number)

    def is_successor(self, number: int, version: ContentTree) -> bool:
        """Whether a version is the one of its family that takes over events of an older version."""
        is_newer = version.family > self._family_of.get(number, number)
        return is_newer and self._heirs.get(version.family) == version.number

    def make(self, number: int) -> ContentTree | None:
        """A version, created if routing may announce it later, unless it was dropped."""
        version = self._versions.get(number)
        if version is None and number not in self._dropped:
            unknown = sorted(n for n, v in self._versions.items() if v.built_us is None)
            if len(unknown) >= _MOST_UNKNOWN:
                self._forget(unknown[0])
            version = self._versions[number] = ContentTree(number, self._boxes, self._is_merging)
            for subscription, since_us in self._own.items():
                version.table.add(LOCAL, subscription.number, self._since_ms(since_us))
        return version

    def subscribe(self, now_us: int, subscription: Subscription) -> bool:
        """Add a subscription of this peer; returns whether it is new."""
        if subscription in self._own:
            return False
        self._own[subscription] = now_us
        for version in self._versions.values():
            version.table.add(LOCAL, subscription.number, self._since_ms(now_us))
        return True

    def unsubscribe(self, subscription: Subscription) -> bool:
        """Remove a subscription of this peer; returns whether it existed."""
        if self._own.pop(subscription, None) is None:
            return False
        for version in self._versions.values():
            version.table.remove(LOCAL, subscription.number)
        return True

    def wants(self, point: Point, published_us: int) -> bool:
        """Whether this peer itself wants an event."""
        return any(
            since_us <= published_us and own.matches(point) for own, since_us in self._own.items()
        )

    def _drop(self, number: int) -> None:
        self._forget(number)
        self._dropped.add(number)
        self._heirs = {version.family: version.number for version in self.announced()}
        for other in [n for n, v in self._versions.items() if n < number and v.built_us is None]:
            self._forget(other)

    def _forget(self, number: int) -> None:
        version = self._versions.pop(number, None)
        if version is not None:
            version.table.close()

    def _since_ms(self, since_us: int) -> int:
        """The time from which others send events; before the first event it is irrelevant."""
        return 0 if since_us <= self._start_us else since_us // 1_000
