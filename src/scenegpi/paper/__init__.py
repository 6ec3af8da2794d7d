"""Reproduces the paper: compared systems, the synthetic experiment, drawn scenes, figures, word vectors.

    systems     the systems of its table, with the same inputs as the GPI models
    labelling   the synthetic experiment of section 5.1
    rendered    drawn scenes with exact boxes, labels and relations
    figures     pictures of the theorem, the network, the matching and the results
    glove       GloVe vectors learned from captions

The product depends on none of it, except for the names of the systems' presets.
"""
