"""Claims S1 to S4: small-world overlays by interests, and publications by ranges on them."""
