"""`python -m whyrank`: the command line."""

from whyrank.cli.main import main

main()
