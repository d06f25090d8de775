"""A minimal device plugin for devhost: one simulated device, written in Python."""
