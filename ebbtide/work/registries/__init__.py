"""Container registries: images with the code of a folder, made and pushed without Docker."""
