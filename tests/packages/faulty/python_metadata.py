from working_hooks import *  # noqa: F403
