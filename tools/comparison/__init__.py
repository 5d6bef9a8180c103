"""Random nodes of com.microsoft, run before and after their conversion to standard operators."""
