"""Names in the public file of measured serving runs, and the presets of the same shapes; the file is not shipped."""

MODELS = {
    "meta-llama/Llama-3.1-8B-Instruct": "llama-3-8b",
    "meta-llama/Llama-3.1-70B-Instruct": "llama-3-70b",
    "Qwen/Qwen3-8B": "qwen3-8b",
    "Qwen/Qwen3-32B": "qwen3-32b",
}
MACHINES = {"H100": "h100-sxm", "B200": "b200-sxm"}
