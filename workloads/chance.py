"""Random numbers of a workload: a NumPy generator for each purpose, from the seed of the run."""

import hashlib

import numpy as np


def make_generator(seed: int | str, purpose: str) -> np.random.Generator:
    """The generator of a purpose; what is drawn for one does not change what others draw."""
    digest = hashlib.blake2b(f"{seed}/{purpose}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))
