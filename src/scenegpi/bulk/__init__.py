"""Many images: the journal, the folder of a run, its inputs and workers, ray."""
