"""Runtimes: programs that run models, with the operator versions and element types that they implement."""
