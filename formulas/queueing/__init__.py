"""Waiting before the first token: single-server queues fed by a Poisson stream of prompts."""
