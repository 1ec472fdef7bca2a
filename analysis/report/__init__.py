"""The report of a run: one self-contained HTML file, and figures for print.

Everything is read from the run directory with Arrow, without Spark. The report names the parts that
a run does not have.
"""

from analysis.report.document import write_report

__all__ = ["write_report"]
