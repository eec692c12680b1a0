"""Explains decisions in the logs of proxies that are not ours, by the manifests."""

from eastgate.reports.why.ends import GivenEnds
from eastgate.reports.why.explaining import LoggedExplanation, explain_logged

__all__ = ["GivenEnds", "LoggedExplanation", "explain_logged"]
