"""The command line, for a checkout: `python cli.py …`."""

from ttlstore.start import main

if __name__ == "__main__":
    main()
