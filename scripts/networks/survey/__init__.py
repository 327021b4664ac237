"""Networks that nobody tuned the compiler for, small enough to compile in seconds each, and what
compiling them comes to: right numbers in inference and training, and what stays on the host.

Importing this package imports neither torch nor transformers.
"""
