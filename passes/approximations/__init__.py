"""Polynomial approximations of elementary functions on f32 vectors."""
