"""Builders and readers of tensor-level IR that several passes share. No pass lives here."""
