import threading

from working_hooks import *  # noqa: F403

threading.Thread(target=threading.Event().wait, name="heartbeat", daemon=True).start()
