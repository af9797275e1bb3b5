"""Weights in another form: low-rank adapters, reparametrized weights, word vectors."""
