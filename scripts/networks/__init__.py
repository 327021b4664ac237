"""The networks that the demo and the integration tests compile.

Importing this package imports neither torch nor transformers.
"""
