"""A captured program out of Python: IR, objects, a C header, weights and a stitching plan."""
