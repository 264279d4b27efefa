"""`python -m ebbtide`: the command line, from the repository or an installed package."""

from ebbtide.cli import main

if __name__ == "__main__":
    main()
