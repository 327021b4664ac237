"""What `update_docs` writes: tables, the dialect reference, the case study."""
