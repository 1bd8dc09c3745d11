"""`python -m ttlstore`."""

from ttlstore.cli import main

main()
