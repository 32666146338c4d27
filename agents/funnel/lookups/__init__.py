"""Where evidence is looked up: adapters of the look-up port. `http`, `redis` and `signed`, each loaded by itself."""
