"""The popularity of topics (Chen and Tock, Middleware Industry 2015, section 5).

Topics are numbered by their rank, the most popular one is 0. The paper gives no rate for the
exponential distribution; `decay` = 10 makes the last topic e^-10 as popular as the first.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Shape = Literal["uniform", "zipf", "exponential"]


@dataclass(frozen=True, slots=True)
class Popularity:
    """The probabilities p(t) of topics of ranks i = 1, 2, ... |T|.

    `uniform`: p = 1/|T|; `zipf`: p ~ i^-exponent; `exponential`: p ~ exp(-decay * i / |T|).
    """

    shape: Shape
    exponent: float = 2.0
    decay: float = 10.0

    def chances(self, topics: int) -> NDArray[np.float64]:
        """The probability of each topic to be drawn first; their sum is 1."""
        rank = np.arange(1, topics + 1, dtype=np.float64)
        if self.shape == "zipf":
            weights = rank**-self.exponent
        elif self.shape == "exponential":
            weights = np.exp(-self.decay * rank / topics)
        else:
            weights = np.ones(topics)
        chances: NDArray[np.float64] = weights / weights.sum()
        return chances
