import { promptRequest } from '../request.ts';
import { chatWire } from './chat-wire.ts';
import type { ProviderWire } from './wire.ts';

/** The `Envelope` selects the shape of its chunks. */
export const completionsWire: ProviderWire = {
  ...chatWire,
  path: '/completions',
  hasTurns: false,
  request: promptRequest,
};
