"""Linguistic annotation: sentences, lemmas, parts of speech, noun chunks and entities of texts."""
