"""HTTP server of scripted models, on the loopback interface."""
