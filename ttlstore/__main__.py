"""`python -m ttlstore`."""

from ttlstore.start import main

main()
