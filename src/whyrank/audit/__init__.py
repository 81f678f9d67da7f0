"""The runner: puts studies to rankers and collects what they answer."""

from whyrank.audit.runner import Answer, Plan, answers, with_adjusted_p

__all__ = ["Answer", "Plan", "answers", "with_adjusted_p"]
