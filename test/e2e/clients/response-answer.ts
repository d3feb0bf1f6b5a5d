import type { Response } from 'openai/resources/responses/responses';
import type { Answer } from './chat-client.ts';

/** An answer with its whole response, minus what differs from run to run. */
export interface ResponseAnswer extends Answer {
  readonly response: unknown;
}

/** The answer that an application takes from a response. */
export function responseAnswer(response: Response): ResponseAnswer {
  const { output, status, incomplete_details, usage } = response;
  const calls = output.filter((item) => item.type === 'function_call');
  const texts = output.flatMap((item) => (item.type === 'message' ? item.content : []));
  const thoughts = output.flatMap((item) => (item.type === 'reasoning' ? item.summary : []));
  if (status !== 'completed') throw new Error(`the response is ${status}: ${incomplete_details?.reason}`);
  return {
    text: texts.map((part) => (part.type === 'output_text' ? part.text : '')).join(''),
    reasoning: thoughts.map(({ text }) => text).join(''),
    toolCalls: calls.map(({ call_id, name, arguments: json }) => ({
      id: call_id,
      name,
      arguments: JSON.parse(json) as unknown,
    })),
    finish: calls.length > 0 ? 'tool_calls' : 'stop',
    usage,
    response: comparable(response),
  };
}

/**
 * Removes what differs between responses of the test provider: serial numbers, times, and model names, which select its
 * behaviour.
 */
function comparable(response: object): unknown {
  const { created_at: _created, model: _model, ...rest } = response as Record<string, unknown>;
  const text = JSON.stringify(rest, (key, value: unknown) =>
    key === 'parsed_arguments' || key === 'parsed' ? undefined : value,
  );
  // Items are numbered by position, and cut reasoning counts as an item.
  const numbered = /(?<=_chatcmpl-\d+)_\d+/g;
  return JSON.parse(text.replaceAll(numbered, '').replaceAll(/chatcmpl-\d+/g, 'chatcmpl-n'));
}
