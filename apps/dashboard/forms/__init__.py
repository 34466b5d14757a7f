"""Forms of the pages. They check what a person typed and say in words what is wrong; services do the work."""
