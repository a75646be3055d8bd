"""
Writes the state of a finished run of OpenAI Agents for Python, with its decisions and its approval items.

Run it from this folder, in this repository's environment; the file in `stored` is written anew:

    python make_openai_agents.py
"""

import asyncio
import json

from conftest import STORED, openai_agents

states = asyncio.run(openai_agents())
(STORED / "openai_agents_python_done.json").write_text(json.dumps(states["done"], indent=1) + "\n")
