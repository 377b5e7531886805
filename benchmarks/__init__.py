"""How fast Headroom is, held against its targets: ``python -m benchmarks``."""
