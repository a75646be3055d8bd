// Writes what the AI SDK stores of one story: model messages and UI messages, paused and finished.
//
// Run it in a folder in which the SDK is installed, with the path of the folder `stored` beside this file:
//
//     npm install ai@7.0.173 zod@4 && cp .../tests/conversations/histories/make_ai_sdk.mjs . && node make_ai_sdk.mjs .../tests/conversations/histories/stored

import { convertToModelMessages, generateText, isStepCount, readUIMessageStream, streamText, tool } from 'ai';
import { MockLanguageModelV4, simulateReadableStream } from 'ai/test';
import { writeFileSync } from 'node:fs';
import { z } from 'zod';

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const tools = {
  pay: tool({ inputSchema: z.object({ amount: z.number() }), needsApproval: true, execute: async ({ amount }) => `paid ${amount}` }),
  read: tool({ inputSchema: z.object({ path: z.string() }), execute: async ({ path }) => `text of ${path}` }),
};
const call = (toolCallId, toolName, input) => ({ type: 'tool-call', toolCallId, toolName, input: JSON.stringify(input) });
const replies = () => [
  [{ type: 'text', text: 'Let me see.' }, call('c1', 'pay', { amount: 5 }), call('c2', 'pay', { amount: 6 }), call('c3', 'read', { path: 'x' })],
  [{ type: 'text', text: 'Done.' }],
];
const ending = (content) => {
  const reason = content.some((part) => part.type === 'tool-call') ? 'tool-calls' : 'stop';
  return { finishReason: { unified: reason, raw: reason }, usage };
};
const write = (name, value) => writeFileSync(`${process.argv[2]}/${name}.json`, JSON.stringify(value, null, 1) + '\n');

async function modelMessages() {
  const script = replies();
  const model = new MockLanguageModelV4({
    doGenerate: async () => { const content = script.shift(); return { content, ...ending(content), warnings: [] }; },
  });
  const messages = [{ role: 'user', content: 'Pay 5 and 6' }];
  const paused = await generateText({ model, tools, messages, stopWhen: isStepCount(8) });
  messages.push(...paused.responseMessages);
  write('ai_sdk_paused', messages);
  const asked = paused.content.filter((part) => part.type === 'tool-approval-request');
  const answers = [{ approved: true }, { approved: false, reason: 'no 6' }];
  messages.push({ role: 'tool', content: asked.map(({ approvalId }, at) => ({ type: 'tool-approval-response', approvalId, ...answers[at] })) });
  const done = await generateText({ model, tools, messages, stopWhen: isStepCount(8) });
  messages.push(...done.responseMessages);
  write('ai_sdk_done', messages);
}

function chunks(content) {
  const parts = content.flatMap((part) => part.type !== 'text' ? [part] : [
    { type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta: part.text }, { type: 'text-end', id: 't' }]);
  return [{ type: 'stream-start', warnings: [] }, ...parts, { type: 'finish', ...ending(content) }];
}

async function uiMessages() {
  const script = replies();
  const model = new MockLanguageModelV4({
    doStream: async () => ({ stream: simulateReadableStream({ chunks: chunks(script.shift()) }) }),
  });
  const messages = [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Pay 5 and 6' }] }];
  const turn = async () => {
    const result = streamText({ model, tools, messages: await convertToModelMessages(messages, { tools }), stopWhen: isStepCount(8) });
    const last = messages.at(-1).role === 'assistant' ? messages.pop() : undefined;
    const stream = result.toUIMessageStream({ originalMessages: last ? [...messages, last] : messages, generateMessageId: () => 'a1' });
    let message;
    for await (message of readUIMessageStream({ message: last, stream }));
    messages.push(message);
  };
  await turn();
  write('ai_sdk_ui_paused', messages);
  const answers = [{ approved: true }, { approved: false, reason: 'no 6' }];
  for (const part of messages[1].parts.filter((part) => part.state === 'approval-requested')) {
    part.state = 'approval-responded';
    part.approval = { ...part.approval, ...answers.shift() };
  }
  write('ai_sdk_ui_decided', messages);
  await turn();
  write('ai_sdk_ui_done', messages);
}

await modelMessages();
await uiMessages();
