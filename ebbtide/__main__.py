"""`python -m ebbtide`: the command line, from the repository or where the package is installed."""

from ebbtide.cli import main

if __name__ == "__main__":
    main()
