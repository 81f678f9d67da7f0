"""Word vectors: files of them, GloVe, and vectors trained on a collection."""
