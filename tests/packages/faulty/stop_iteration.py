next(iter(()))
