"""What the plugin does, a topic a module; `plugin.py` imports each of them only where it is needed."""
