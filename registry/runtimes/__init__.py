"""Runtimes: the operators, versions and element types that programs which run models implement."""
