"""How a run reads: as it stands, what the next version is written from, what came of a proposal."""
