import Anthropic from '@anthropic-ai/sdk';
import { type Answer, API_KEY, type ChatClient, type Question, type Tool } from './chat-client.ts';

/** Adds the message as an application has it: what it would send back with the next turn. */
export interface MessageAnswer extends Answer {
  readonly message: unknown;
}

/** The SDK appends the version to the address. Retries are off, because recovery is Holdfast's job. */
const connect = (url: string, fetch?: typeof globalThis.fetch) =>
  new Anthropic({ baseURL: url.replace(/\/v1$/, ''), apiKey: API_KEY, maxRetries: 0, fetch });

/** The API requires a limit. */
export const MAX_TOKENS = 4096;

export const messagesTools = (tools: readonly Tool[]) =>
  tools.map(({ name, parameters }) => ({ name, input_schema: { ...parameters, type: 'object' as const } }));

export const messageRequestOf = ({ model, content, tools, parameters }: Question) => ({
  model,
  max_tokens: MAX_TOKENS,
  messages: [{ role: 'user' as const, content }],
  ...(tools.length > 0 && { tools: messagesTools(tools) }),
  ...parameters,
});

/** The raw events, assembled by the application. */
export function anthropicEvents(url: string, fetch?: typeof globalThis.fetch): ChatClient {
  const client = connect(url, fetch);
  return {
    name: 'anthropic, event by event',
    async ask(question): Promise<MessageAnswer> {
      let message: Anthropic.Message | undefined;
      let stopped = false;
      const inputs: string[] = [];
      for await (const event of await client.messages.create({
        ...messageRequestOf(question),
        stream: true,
      })) {
        if (event.type === 'message_start') message = event.message;
        else if (!message) throw new Error(`${event.type} before the message`);
        else if (event.type === 'message_stop') stopped = true;
        else take(event, message, inputs);
      }
      if (!message || !stopped) throw new Error('the stream ended without its end');
      for (const [index, json] of inputs.entries()) {
        const block = message.content[index];
        if (block?.type === 'tool_use') block.input = JSON.parse(json) as unknown;
      }
      return answerOf(message);
    },
  };
}

function take(
  event: Exclude<Anthropic.MessageStreamEvent, { type: 'message_start' | 'message_stop' }>,
  message: Anthropic.Message,
  inputs: string[],
): void {
  if (event.type === 'message_delta') {
    const { stop_reason, stop_sequence } = event.delta;
    Object.assign(message, { stop_reason, stop_sequence });
    message.usage.output_tokens = event.usage.output_tokens;
    return;
  }
  if (event.type === 'content_block_start') {
    if (event.index !== message.content.length) throw new Error(`block ${event.index} is not the next one`);
    message.content.push(event.content_block as Anthropic.ContentBlock);
    return;
  }
  const block = message.content[event.index];
  if (!block || event.index !== message.content.length - 1)
    throw new Error(`no block ${event.index} is open`);
  if (event.type === 'content_block_stop') return;
  const { delta } = event;
  if (delta.type === 'text_delta' && block.type === 'text') block.text += delta.text;
  else if (delta.type === 'thinking_delta' && block.type === 'thinking') block.thinking += delta.thinking;
  else if (delta.type === 'signature_delta' && block.type === 'thinking') block.signature = delta.signature;
  else if (delta.type === 'input_json_delta')
    inputs[event.index] = (inputs[event.index] ?? '') + delta.partial_json;
  else throw new Error(`a ${delta.type} in a block of ${block.type}`);
}

/** The helper that assembles the message itself. */
export function anthropicHelper(url: string, fetch?: typeof globalThis.fetch): ChatClient {
  const client = connect(url, fetch);
  return {
    name: 'anthropic, .stream()',
    async ask(question): Promise<MessageAnswer> {
      return answerOf(await client.messages.stream(messageRequestOf(question)).finalMessage());
    },
  };
}

const FINISHES: Readonly<Record<string, string>> = { end_turn: 'stop', tool_use: 'tool_calls' };

/** The id and the model differ from case to case. */
function answerOf({ id: _id, model: _model, ...message }: Anthropic.Message): MessageAnswer {
  const { content, stop_reason, usage } = message;
  return {
    text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    reasoning: content.map((block) => (block.type === 'thinking' ? block.thinking : '')).join(''),
    toolCalls: content.flatMap((block) =>
      block.type === 'tool_use' ? [{ id: block.id, name: block.name, arguments: block.input }] : [],
    ),
    finish: FINISHES[stop_reason ?? ''] ?? stop_reason,
    usage,
    message: JSON.parse(JSON.stringify(message)) as unknown,
  };
}
