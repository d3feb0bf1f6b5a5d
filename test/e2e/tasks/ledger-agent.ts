import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import OpenAI from 'openai';
import { task, UnknownCallError } from '../../../src/client/index.ts';

/*
 * An agent whose tool sends mails, which are lines of a file. It is killed at a place of its own choice, the n-th of those
 * where an agent can be lost: at each chunk of an answer, before a tool, in it before and after its effect, and behind it.
 * `stock`: it knows nothing of tasks.
 */

const [bases = '', name = '', mailbox = '', place = '0', manner = 'ledger'] = process.argv.slice(2);
const endpoints = bases.split(',');
const invitations = task(name, { endpoints });
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

/** Where it may be lost, in order. */
const places: ('chunk' | 'tool')[] = [];
function mayBeLostHere(at: 'chunk' | 'tool'): void {
  places.push(at);
  if (places.length === Number(place)) process.kill(process.pid, 'SIGKILL');
}

function sendMail(to: string): string {
  mayBeLostHere('tool');
  appendFileSync(mailbox, `${to}\n`);
  mayBeLostHere('tool');
  return `sent to ${to}`;
}

const mailsTo = (to: string): number =>
  existsSync(mailbox)
    ? readFileSync(mailbox, 'utf8')
        .split('\n')
        .filter((line) => line === to).length
    : 0;

async function runTool(call: OpenAI.ChatCompletionMessageFunctionToolCall): Promise<string> {
  const { to } = JSON.parse(call.function.arguments) as { to: string };
  if (manner !== 'ledger') return sendMail(to);
  const send = () => invitations.tool(call, () => sendMail(to), { hold_ms: 300 });
  try {
    return await send();
  } catch (error) {
    if (!(error instanceof UnknownCallError)) throw error;
    // Whether it has had its effect can be seen.
    if (mailsTo(to) > 0) return `sent to ${to}`;
    await error.release();
    return send();
  }
}

for (;;) {
  const stream = client.chat.completions.stream({ model: 'model', messages, tools: [send_mail] });
  stream.on('chunk', () => mayBeLostHere('chunk'));
  const message = (await stream.finalChatCompletion()).choices[0]?.message;
  if (!message) throw new Error('there is no answer');
  messages.push(message);
  const calls = message.tool_calls ?? [];
  for (const call of calls) {
    if (call.type !== 'function') throw new Error(`what is ${call.type}?`);
    mayBeLostHere('tool');
    messages.push({ role: 'tool', tool_call_id: call.id, content: await runTool(call) });
    mayBeLostHere('tool');
  }
  if (calls.length === 0) break;
}
process.stdout.write(JSON.stringify({ messages, places }));
