"""Whether a converted model gives what the original gives, told by running both."""
