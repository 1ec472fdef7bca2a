"""One run: its preparation, its directory and its verdict."""
