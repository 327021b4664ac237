"""Questions that several passes ask about kernel functions. No pass lives here."""
