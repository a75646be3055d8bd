// Writes the states of one run of OpenAI Agents for JavaScript: paused, decided, and finished.
//
// Run it in a folder in which the SDK is installed, with the path of the folder `stored` beside this file:
//
//     npm install @openai/agents@0.20.0 zod@4 && cp .../tests/conversations/histories/make_openai_agents.mjs . && node make_openai_agents.mjs .../tests/conversations/histories/stored

import { Agent, run, tool, setTracingDisabled, Usage } from '@openai/agents';
import { writeFileSync } from 'node:fs';
import { z } from 'zod';
setTracingDisabled(true);
const call = (id, name, args) => ({ type: 'function_call', id: `fc_${id}`, callId: id, name, arguments: JSON.stringify(args), status: 'completed' });
const said = (text) => ({ type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text }] });
const replies = [[said('Let me see.'), call('c1', 'pay', { amount: 5 }), call('c2', 'pay', { amount: 6 }), call('c3', 'read', { path: 'x' })], [said('Done.')]];
const model = { getResponse: async () => ({ usage: new Usage(), output: replies.shift(), responseId: 'r' }), async *getStreamedResponse() {} };
const pay = tool({ name: 'pay', description: 'Pays.', parameters: z.object({ amount: z.number() }), needsApproval: true, execute: async ({ amount }) => `paid ${amount}` });
const read = tool({ name: 'read', description: 'Reads.', parameters: z.object({ path: z.string() }), execute: async ({ path }) => `text of ${path}` });
const agent = new Agent({ name: 'A', model, tools: [pay, read] });
const write = (name, state) => writeFileSync(`${process.argv[2]}/${name}.json`, JSON.stringify(JSON.parse(state.toString()), null, 1) + '\n');
const { state, interruptions } = await run(agent, 'Pay 5 and 6');
write('openai_agents_js_paused', state);
state.approve(interruptions[0]);
state.reject(interruptions[1], { message: 'no 6' });
write('openai_agents_js_decided', state);
const done = await run(agent, state);
write('openai_agents_js_done', done.state);
