"""The pair scorer of PaRM: weights of all pairs of two vocabularies."""
