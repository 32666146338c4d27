"""The records, a module each, with their headers, keys and fingerprints; `published` writes their JSON Schemas.

Not here: answers of a model (`systemone`), how bytes are read (`values`).
"""
