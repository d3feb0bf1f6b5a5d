import type { Envelope } from '../events.ts';
import type { ExpectedAnswer } from '../expected.ts';
import type { Utterance } from '../limits.ts';
import {
  KEEPALIVE,
  responsesBadFinish,
  responsesErrors,
  responsesEvents,
  responsesMalformed,
} from './responses-events.ts';
import { responsesRequest } from './responses-request.ts';
import type { ProviderWire } from './wire.ts';

export const responsesWire: ProviderWire = {
  path: '/responses',
  hasTurns: true,
  request: responsesRequest,
  events: responsesEvents,
  errors: responsesErrors,
  badFinish: responsesBadFinish,
  done: ['data: [DONE]\n\n'],
  malformed: responsesMalformed,
  ping: () => KEEPALIVE,
  whole: response,
};

/** The answer to a request that doesn't ask for a stream: the response in a stream's last event. */
function response({ usage }: ExpectedAnswer, envelope: Envelope, said: Utterance): object {
  const { events } = responsesEvents(said, envelope, usage);
  const [, payload = ''] = /^data: (.*)$/m.exec(events.at(-1) ?? '') ?? [];
  return (JSON.parse(payload) as { readonly response: object }).response;
}
