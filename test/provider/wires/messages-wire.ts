import { errorEvents } from '../error-events.ts';
import type { Envelope } from '../events.ts';
import type { ExpectedAnswer } from '../expected.ts';
import type { Utterance } from '../limits.ts';
import {
  contentOf,
  inputOf,
  MESSAGE_STOP,
  messageOf,
  messagesBadFinish,
  messagesEvents,
  messagesMalformed,
  PING,
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

/** The answer to a request that doesn't ask for a stream. */
function message({ usage, finish }: ExpectedAnswer, envelope: Envelope, { deltas }: Utterance): object {
  return {
    ...messageOf(envelope),
    content: contentOf(deltas),
    stop_reason: stopReason(finish),
    stop_sequence: null,
    usage: { ...inputOf(usage), output_tokens: usage.completion_tokens },
  };
}
