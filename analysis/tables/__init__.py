"""The tables of a run, written once as Parquet."""
