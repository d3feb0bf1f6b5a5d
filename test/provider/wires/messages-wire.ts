import { errorEvents } from '../error-events.ts';
import type { Envelope } from '../events.ts';
import type { ExpectedAnswer } from '../expected.ts';
import {
  MESSAGE_STOP,
  messageOf,
  messagesBadFinish,
  messagesEvents,
  messagesMalformed,
  PING,
  signatureOf,
  stopReason,
} from './messages-events.ts';
import { messagesRequest } from './messages-request.ts';
import type { ProviderWire } from './wire.ts';

export const messagesWire: ProviderWire = {
  path: '/messages',
  hasTurns: true,
  request: messagesRequest,
  events: messagesEvents,
  errors: errorEvents,
  badFinish: messagesBadFinish,
  done: [MESSAGE_STOP],
  malformed: messagesMalformed,
  ping: () => PING,
  whole: message,
};

/** The answer to a request that does not ask for a stream. */
function message(expected: ExpectedAnswer, envelope: Envelope): object {
  const { text, reasoning, toolCalls, finish, usage } = expected;
  const thinking = { type: 'thinking', thinking: reasoning, signature: signatureOf(reasoning) };
  return {
    ...messageOf(envelope),
    content: [
      ...(reasoning === '' ? [] : [thinking]),
      ...(text === '' ? [] : [{ type: 'text', text }]),
      ...toolCalls.map(({ id, name, arguments: json }) => ({
        type: 'tool_use',
        id,
        name,
        input: JSON.parse(json === '' ? '{}' : json) as unknown,
      })),
    ],
    stop_reason: stopReason(finish),
    stop_sequence: null,
    usage: { input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens },
  };
}
