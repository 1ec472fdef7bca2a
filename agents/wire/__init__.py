"""Messages on the network: their bytes, the header that all share, and the reliable hop."""
