"""From a door (HTTP JSON, OTLP, demo data) to stored rows: normalize, batch, commit, answer."""
