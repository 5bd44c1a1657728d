"""The daemon itself, its commands, and what its operators decide and are shown."""
