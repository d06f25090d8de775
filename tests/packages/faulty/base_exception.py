class Unusual(BaseException):
    pass


raise Unusual("neither Exception nor KeyboardInterrupt")
