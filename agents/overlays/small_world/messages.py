"""The messages by which peers of a small-world overlay learn of each other's interests."""

from msgspec import Struct

from agents.wire.codec import U16, U32, U64, Peer, message


class Sample(Struct, frozen=True):
    """A piece of the knowledge about a peer: its position, and some of its topics.

    Of two versions the higher one counts; the `pieces` of one version make up all topics. The
    peer itself sent this `age_s` ago.
    """

    peer: Peer
    position: U64
    version: U32
    age_s: U16
    piece: U16
    pieces: U16
    topics: tuple[U32, ...]


@message(180, role="control")
class Samples(Struct, frozen=True):
    """The sender's knowledge of some peers; the receiver may answer with its own."""

    wants_answer: bool
    samples: tuple[Sample, ...]
