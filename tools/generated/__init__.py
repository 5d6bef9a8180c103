"""Files that follow from others: each module tells what its files are to hold."""
