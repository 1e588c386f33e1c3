"""The one exception type that is shown to a user as a message; anything else that escapes is a bug."""


class TraceError(Exception):
    """A refusal with a reason a user can act on.

    ``what`` says what was wrong (naming the file and the place in it), ``action`` what to do about it. Together they
    make at most three lines, in the window's message bar and on stderr alike.
    """

    def __init__(self, what: str, *, action: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.action = action

    def lines(self) -> list[str]:
        """The message as one or two lines, control characters already replaced."""
        return [printable(line) for line in (self.what, self.action) if line]


def printable(text: str) -> str:
    """``text`` on one line, control, bidi and escape characters made visible: a name must not drive a terminal."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
