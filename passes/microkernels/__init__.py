"""Vector code for tiles: register-blocked contractions, lane-wise nests, reductions, moves."""
