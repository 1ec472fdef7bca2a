"""Underlays: their model, files, generators, importers, routes, statistics and pictures."""
