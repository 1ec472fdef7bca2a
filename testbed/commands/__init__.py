"""The commands of `tdo`: each module adds its parser and runs what was asked."""
