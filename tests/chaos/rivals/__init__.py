"""Other ways to carry records from one topic to another, under the faults of the chaos run."""
