"""What a request can end with, other than an answer."""


class Wrong(Exception):
    """What must never be: a wrong answer, an error that no driver expects, no answer at all."""


class Lost(Exception):
    """The connection ended before the answer, so nobody told what became of the request."""

    code = None


class Refused(Exception):
    """An error that its driver knows. `sure`: it says that the statement was not done. `ended`: the connection ended with it."""

    def __init__(self, code, text, sure, ended):
        super().__init__(f"{code} {text}")
        self.code, self.sure, self.ended = code, sure, ended


# How long anything may take that has to come. It only catches a hang, on a machine however slow.
DEADLINE_S = 180.0
