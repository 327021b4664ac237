"""How many products of two 8-bit integers may be added up in 32 bits, whatever they are."""

MAX_TERMS = (2**31 - 1) // 2**14
