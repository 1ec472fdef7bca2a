"""Claims G1 and G2: our generators give networks like those of BRITE and GT-ITM."""
