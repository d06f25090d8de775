import sys

sys.stderr.close()
raise OSError("nobody can read this")
