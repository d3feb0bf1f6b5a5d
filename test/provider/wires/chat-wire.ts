import { badFinishEvents, errorEvents, malformedEvent } from '../error-events.ts';
import { chunk, DONE, event, eventsOf } from '../events.ts';
import { completion } from '../expected.ts';
import { completionRequest } from '../request.ts';
import type { ProviderWire } from './wire.ts';

export const chatWire: ProviderWire = {
  path: '/chat/completions',
  hasTurns: true,
  request: completionRequest,
  events: eventsOf,
  errors: errorEvents,
  badFinish: badFinishEvents,
  done: [DONE],
  malformed: malformedEvent,
  ping: (envelope) => event(chunk(envelope, {}, null)),
  whole: completion,
};
