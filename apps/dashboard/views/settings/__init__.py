"""Settings: one module a page. Every page acts on the current project or, where it says so, on the whole instance."""
