import OpenAI from 'openai';
import { task } from '../../../src/client/index.ts';
import { MailTool } from './mail-tool.ts';

/*
 * An agent whose tool sends mail. It kills itself at the n-th place where an agent can be lost: at each chunk of an
 * answer, before a tool, within it before and after its effect, and after it.
 */

const [bases = '', name = '', mailbox = '', place = '0', manner = 'ledger'] = process.argv.slice(2);
const endpoints = bases.split(',');
const invitations = task(name, { endpoints });
const mail = new MailTool(invitations, mailbox, Number(place), manner);
const client = new OpenAI({
  baseURL: endpoints[0],
  apiKey: 'sk-agent',
  ...(manner === 'ledger' && { fetch: invitations.fetch }),
});
const send_mail: OpenAI.ChatCompletionTool = {
  type: 'function',
  function: {
    name: 'send_mail',
    parameters: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] },
  },
};
const messages: OpenAI.ChatCompletionMessageParam[] = [
  { role: 'user', content: `Invite them both. ${name}` },
];

for (;;) {
  const stream = client.chat.completions.stream({ model: 'model', messages, tools: [send_mail] });
  stream.on('chunk', () => mail.mayBeLostHere('chunk'));
  const message = (await stream.finalChatCompletion()).choices[0]?.message;
  if (!message) throw new Error('there is no answer');
  messages.push(message);
  const calls = message.tool_calls ?? [];
  for (const call of calls) {
    if (call.type !== 'function') throw new Error(`what is ${call.type}?`);
    const { to } = JSON.parse(call.function.arguments) as { to: string };
    messages.push({ role: 'tool', tool_call_id: call.id, content: await mail.run(call, to) });
  }
  if (calls.length === 0) break;
}
process.stdout.write(JSON.stringify({ messages, places: mail.places }));
