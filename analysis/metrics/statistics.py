"""Means and quantiles that do not depend on the order of the values."""

from math import fsum
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike


def spread(values: ArrayLike) -> dict[str, Any] | None:
    """Mean, median, 90th percentile and maximum; None of no values."""
    known = np.asarray(values, dtype=np.float64)
    if not known.size:
        return None
    p50, p90 = np.percentile(known, (50, 90)).tolist()
    return {"mean": fsum(known) / known.size, "p50": p50, "p90": p90, "max": float(known.max())}


def relative_delay(rows: pd.DataFrame, over: str) -> dict[str, Any] | None:
    """The spread of delays (column `over`) divided by unicast delays (`unicast_us`).

    `of_sums` is the sum of the former divided by the sum of the latter. Rows without a delay, or
    without any unicast delay, do not count.
    """
    known = rows[rows[over].notna() & (rows["unicast_us"] > 0).fillna(False).astype(bool)]
    delay_us, unicast_us = known[over].astype("int64"), known["unicast_us"].astype("int64")
    found = spread(delay_us / unicast_us)
    if found is None:
        return None
    return found | {"of_sums": int(delay_us.sum()) / int(unicast_us.sum()), "count": len(known)}


def ratio(part: float, whole: float) -> float | None:
    """A quotient; None if the divisor is 0."""
    return float(part / whole) if whole else None
