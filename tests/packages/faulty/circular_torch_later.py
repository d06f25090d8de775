import torch  # noqa: F401
from working_hooks import *  # noqa: F403
