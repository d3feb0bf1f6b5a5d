import { finishReasonOf } from '../../src/proxy/wires/messages/ending.ts';
import type { StreamReading } from './stream-reading.ts';

type Json = Readonly<Record<string, unknown>>;

/** What a client reads from a document, in the form of a stream's reading. */
export type DocumentReading = Pick<
  StreamReading,
  'text' | 'reasoning' | 'refusal' | 'toolCalls' | 'finish' | 'usage'
>;

/** Reads a document of any wire. */
export function messageIn(document: Json): DocumentReading {
  if (document.type === 'message') return ofMessage(document);
  return document.object === 'response' ? ofResponse(document) : ofCompletion(document);
}

function ofCompletion({ choices, usage }: Json): DocumentReading {
  const [choice = {}, ...others] = choices as Json[];
  if (others.length > 0) throw new Error('more than one choice');
  const message = (choice.message ?? { content: choice.text }) as Json;
  const calls = (message.tool_calls ?? []) as { id: string; function: { name: string; arguments: string } }[];
  return {
    text: String(message.content ?? ''),
    reasoning: String(message.reasoning_content ?? message.reasoning ?? ''),
    refusal: String(message.refusal ?? ''),
    toolCalls: calls.map(({ id, function: { name, arguments: json } }) => ({ id, name, arguments: json })),
    finish: choice.finish_reason as string,
    usage: usage as Json | undefined,
  };
}

function ofMessage({ content, stop_reason, usage }: Json): DocumentReading {
  const blocks = content as {
    type: string;
    text: string;
    thinking: string;
    id: string;
    name: string;
    input: object;
  }[];
  const said = (type: string, field: 'text' | 'thinking') =>
    blocks.map((block) => (block.type === type ? block[field] : '')).join('');
  return {
    text: said('text', 'text'),
    reasoning: said('thinking', 'thinking'),
    refusal: '',
    toolCalls: blocks.flatMap(({ type, id, name, input }) =>
      type === 'tool_use' ? [{ id, name, arguments: JSON.stringify(input) }] : [],
    ),
    finish: finishReasonOf(String(stop_reason)),
    usage: usage as Json,
  };
}

function ofResponse({ output, incomplete_details, usage }: Json): DocumentReading {
  const items = output as Json[];
  const parts = items.flatMap((item) => [
    ...((item.summary ?? []) as Json[]),
    ...((item.content ?? []) as Json[]),
  ]);
  const said = (...types: readonly string[]) =>
    parts
      .map(({ type, text, refusal }) => (types.includes(String(type)) ? String(text ?? refusal) : ''))
      .join('');
  const toolCalls = items.flatMap(({ type, call_id, name, arguments: json }) =>
    type === 'function_call' ? [{ id: String(call_id), name: String(name), arguments: String(json) }] : [],
  );
  const { reason } = (incomplete_details ?? {}) as Json;
  const complete = toolCalls.length > 0 ? 'tool_calls' : 'stop';
  return {
    text: said('output_text'),
    reasoning: said('summary_text', 'reasoning_text'),
    refusal: said('refusal'),
    toolCalls,
    finish: reason === undefined ? complete : reason === 'max_output_tokens' ? 'length' : String(reason),
    usage: usage as Json,
  };
}
