"""Claims B1 to B5: BeaConvey beside Scribe and iScribe, with and without overlays by interests."""
