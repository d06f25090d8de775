import signal

from working_hooks import *  # noqa: F403

signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, lambda *arguments: None)
