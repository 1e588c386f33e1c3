"""``python -m tracescope``."""

from tracescope.cli.app import main

if __name__ == "__main__":
    main()
