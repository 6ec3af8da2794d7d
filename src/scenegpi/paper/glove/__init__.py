"""GloVe vectors learned from captions: `count_cooccurrences(captions)`, then `train_glove(counts)`."""
