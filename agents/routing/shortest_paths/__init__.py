"""OPT, the baseline: a shortest-path tree for each publisher."""
