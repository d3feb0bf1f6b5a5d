import { Agent, OpenAIChatCompletionsModel, run, setTracingDisabled, tool } from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';
import { task } from '../../../src/client/index.ts';
import { MailTool } from './mail-tool.ts';

/* The agent of `ledger-agent.ts` as a loop of the OpenAI Agents SDK. */

const [bases = '', name = '', mailbox = '', place = '0', manner = 'ledger'] = process.argv.slice(2);
const endpoints = bases.split(',');
const invitations = task(name, { endpoints });
const mail = new MailTool(invitations, mailbox, Number(place), manner);
setTracingDisabled(true);

const client = new OpenAI({ baseURL: endpoints[0], apiKey: 'sk-agent', fetch: invitations.fetch });
const send_mail = tool({
  name: 'send_mail',
  description: 'Sends a mail.',
  parameters: z.object({ to: z.string() }),
  // If a tool is lost, the agent must end rather than report it to the model.
  errorFunction: null,
  execute: (input, _context, details) => {
    const { toolCall } = details ?? {};
    if (!toolCall) throw new Error('there is no call');
    return mail.run(
      { call_id: toolCall.callId, name: toolCall.name, arguments: toolCall.arguments },
      input.to,
    );
  },
});
const agent = new Agent({
  name: 'Invitations',
  model: new OpenAIChatCompletionsModel(client, 'model'),
  tools: [send_mail],
});
const result = await run(agent, `Invite them both. ${name}`, { stream: true });
for await (const event of result) if (event.type === 'raw_model_stream_event') mail.mayBeLostHere('chunk');
await result.completed;
// Leave out the ids of answers, which differ from task to task.
const messages = result.history.map((item) => ({ ...item, id: undefined, providerData: undefined }));
process.stdout.write(JSON.stringify({ messages, places: mail.places }));
