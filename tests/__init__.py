"""Every test of tracescope, and what tests are made from (``tests.kit``)."""
