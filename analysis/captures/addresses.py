"""IPv6 addresses as text."""

from ipaddress import IPv6Address

import numpy as np
import pyarrow as pa

from analysis.captures.arrays import Values


def ipv6_texts(addresses: Values) -> pa.Array:
    """The text of each address; a capture has many packets and few addresses."""
    # As pairs of numbers: NumPy cannot sort 16 plain bytes.
    halves = np.ascontiguousarray(addresses).view([("upper", ">u8"), ("lower", ">u8")])
    different, index = np.unique(halves, return_inverse=True)
    texts = [str(IPv6Address(address.tobytes())) for address in different]
    return pa.array(texts, pa.string()).take(pa.array(index.reshape(-1)))
