import OpenAI from 'openai';

/*
 * An agent as applications write them: it asks for the next step, does what the model wants, and prints what happens.
 * It keeps nothing between processes, and uses Holdfast through two headers only.
 */

const [baseURL, task, session = String(process.pid)] = process.argv.slice(2);
const dies_after_chunks = Number(process.env.DIES_AFTER_CHUNKS ?? Number.POSITIVE_INFINITY);
let chunks = 0;
const client = new OpenAI({
  baseURL,
  apiKey: 'sk-agent',
  defaultHeaders: { 'Holdfast-Task': task, 'Holdfast-Task-Session': session },
});
const send_mail: OpenAI.ChatCompletionTool = {
  type: 'function',
  function: {
    name: 'send_mail',
    parameters: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] },
  },
};
const messages: OpenAI.ChatCompletionMessageParam[] = [
  { role: 'user', content: `Invite them both. ${task}` },
];

const tell = (what: object): void => void process.stdout.write(`${JSON.stringify(what)}\n`);

for (;;) {
  const stream = client.chat.completions.stream({ model: 'model', messages, tools: [send_mail] });
  stream.on('chunk', () => {
    tell({ chunk: true });
    // A kill from outside could come too late.
    if (++chunks === dies_after_chunks) process.kill(process.pid, 'SIGKILL');
  });
  const message = (await stream.finalChatCompletion()).choices[0]?.message;
  if (!message) throw new Error('there is no answer');
  messages.push(message);
  const calls = message.tool_calls ?? [];
  for (const call of calls) {
    if (call.type !== 'function') throw new Error(`what is ${call.type}?`);
    tell({ mail: call.id, arguments: call.function.arguments });
    messages.push({ role: 'tool', tool_call_id: call.id, content: 'sent' });
  }
  if (calls.length === 0) break;
}
tell({ messages });
