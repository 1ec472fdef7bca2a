"""Messages on the network: encoding, the common header, and reliable delivery over a hop."""
