"""tracescope: LLM decode traces against their memory-bandwidth floor."""

__version__ = "0.1.0"
