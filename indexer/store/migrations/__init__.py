"""The schema's history: one file a revision, up from every released version, run when a writer opens an index."""
