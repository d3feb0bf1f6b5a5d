import OpenAI from 'openai';

// An agent in its own process, so that tests can kill it. Prints the answer as it arrives.

const [baseURL = '', body = '{}'] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: 'client-key', maxRetries: 0 });
const request = JSON.parse(body) as OpenAI.ChatCompletionCreateParamsStreaming;
for await (const { choices } of await client.chat.completions.create(request)) {
  process.stdout.write(choices[0]?.delta.content ?? '');
}
