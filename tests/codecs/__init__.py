"""Tests of what crosses a wire. `reference` reads the rules a second time, `examples` makes inputs."""
