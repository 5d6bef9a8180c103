"""IR version of a model: the features that require it, and the rewrites for an older one."""
