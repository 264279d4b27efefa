# kfp 2.17 carries no types. What Ebbtide uses of it, as its own sources have it; pyright looks here first.
