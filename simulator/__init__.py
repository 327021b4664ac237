"""Runs tile programs: for their results (functional) and for their time (timing). See docs."""
