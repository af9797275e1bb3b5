"""What is too long or too noisy for the tests: speed, memory, soaks. Each is a command, `python -m benchmarks.NAME`."""
