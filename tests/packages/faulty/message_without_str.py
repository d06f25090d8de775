class OddError(Exception):
    def __str__(self):
        raise SystemExit


raise OddError
