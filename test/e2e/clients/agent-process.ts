import OpenAI from 'openai';

// An agent as a process of its own, which can be killed: prints what it is answered, as it comes.

const [baseURL = '', body = '{}'] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: 'client-key', maxRetries: 0 });
const request = JSON.parse(body) as OpenAI.ChatCompletionCreateParamsStreaming;
for await (const { choices } of await client.chat.completions.create(request)) {
  process.stdout.write(choices[0]?.delta.content ?? '');
}
