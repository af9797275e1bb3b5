"""The models that come with minigrad, a package each. Installed as `minigrad_models`."""
