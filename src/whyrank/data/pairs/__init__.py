"""Pair sets: texts that differ in one thing, such as a sentence and its correction, and their readers."""
