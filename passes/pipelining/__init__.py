"""Loops of tiles as sequences of iterations: number them, look ahead, carry tokens along."""
