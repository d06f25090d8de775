class Text(str):
    def split(self, *arguments):
        raise SystemExit(1)


class OddError(Exception):
    def __str__(self):
        return Text("odd")


raise OddError
