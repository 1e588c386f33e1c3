"""The command line: one small module a command family, listed in ``cli.app.COMMANDS``."""
