"""The report of a run: one HTML file that needs nothing else, and figures for print beside it.

Everything is read from the run directory with Arrow, so no Spark session is needed; what a run
does not have is said where it would be.
"""

from analysis.report.document import write_report

__all__ = ["write_report"]
