import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { task } from '../../../src/client/index.ts';
import { MailTool } from './mail-tool.ts';

/* The agent of `ledger-agent.ts` as an AI SDK loop. */

const STEPS_MAX = 10;

const [bases = '', name = '', mailbox = '', place = '0', manner = 'ledger'] = process.argv.slice(2);
const endpoints = bases.split(',');
const invitations = task(name, { endpoints });
const mail = new MailTool(invitations, mailbox, Number(place), manner);
const holdfast = createOpenAICompatible({
  name: 'holdfast',
  baseURL: endpoints[0] ?? '',
  apiKey: 'sk-agent',
  fetch: invitations.fetch,
});
const agent = streamText({
  model: holdfast('model'),
  prompt: `Invite them both. ${name}`,
  stopWhen: stepCountIs(STEPS_MAX),
  tools: {
    send_mail: tool({
      inputSchema: z.object({ to: z.string() }),
      execute: (input, { toolCallId }) => mail.run({ toolCallId, toolName: 'send_mail', input }, input.to),
    }),
  },
});
for await (const part of agent.fullStream) {
  if (part.type === 'error') throw part.error;
  if (part.type === 'text-delta' || part.type === 'tool-input-delta') mail.mayBeLostHere('chunk');
}
const { messages } = await agent.response;
process.stdout.write(JSON.stringify({ messages, places: mail.places }));
