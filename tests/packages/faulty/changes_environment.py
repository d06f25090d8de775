import os

from working_hooks import *  # noqa: F403

os.environ["FAULTY"] = "1"
