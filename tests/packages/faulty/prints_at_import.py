import sys

from working_hooks import *  # noqa: F403

print("Welcome to the faulty device")
print("This is version 1.0", file=sys.stderr)
