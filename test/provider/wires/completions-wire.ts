import { promptRequest } from '../request.ts';
import { chatWire } from './chat-wire.ts';
import type { ProviderWire } from './wire.ts';

/** Its chunks differ by their `Envelope`. */
export const completionsWire: ProviderWire = {
  ...chatWire,
  path: '/completions',
  hasTurns: false,
  request: promptRequest,
};
