"""Waiting before the first token: queues of one server, fed by any stream of prompts of any lengths."""
