"""The workbench for proposals of operators: written as a folder, checked, reviewed, accepted."""
