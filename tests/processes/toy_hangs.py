"""An agent whose module never finishes to be imported."""

import threading

threading.Event().wait()
