"""From run directories and captures to tables, metrics and reports, with Spark."""
