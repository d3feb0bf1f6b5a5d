import type { WireName } from '../../../src/checkpoint/journal.ts';
import { chatWire } from './chat-wire.ts';
import { completionsWire } from './completions-wire.ts';
import { messagesWire } from './messages-wire.ts';
import { responsesWire } from './responses-wire.ts';
import type { ProviderWire } from './wire.ts';

export const PROVIDER_WIRES: Readonly<Record<WireName, ProviderWire>> = {
  chat_completions: chatWire,
  completions: completionsWire,
  messages: messagesWire,
  responses: responsesWire,
};

/** The wire of a path, by the longest matching suffix. */
export function wireAt(path: string): WireName | undefined {
  const names = (Object.keys(PROVIDER_WIRES) as WireName[]).filter((name) =>
    path.endsWith(PROVIDER_WIRES[name].path),
  );
  return names.sort((a, b) => PROVIDER_WIRES[b].path.length - PROVIDER_WIRES[a].path.length)[0];
}
