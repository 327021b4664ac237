"""Vector code for tile compute: register-blocked contractions, lane-wise nests, reductions and moves."""
