import type { RunHeader, WireName } from '../../checkpoint/journal.ts';
import type { StoredRun } from '../../checkpoint/store.ts';
import { chatWire } from './chunks/chat-wire.ts';
import { completionsWire } from './chunks/completions-wire.ts';
import type { Wire } from './common/wire.ts';
import { messagesWire } from './messages/wire.ts';
import { responsesWire } from './responses/wire.ts';

export const WIRES: Readonly<Record<WireName, Wire>> = {
  chat_completions: chatWire,
  completions: completionsWire,
  messages: messagesWire,
  responses: responsesWire,
};

/** The wire of a path at or below its own. The path may have a query. */
export function wireAt(url: string): Wire | undefined {
  const [path = ''] = url.split('?', 1);
  return Object.values(WIRES).find((wire) => `${path}/`.startsWith(`/v1${wire.path}/`));
}

/** The wire of a stored run. `asked`: the client's statement, for a run without a header. */
export const wireOf = ({ records }: Pick<StoredRun, 'records'>, asked?: Pick<RunHeader, 'wire'>): Wire =>
  wireIn(records[0]?.header ?? asked);

/** The wire in a header; without one, the most common wire. */
export const wireIn = (header: Pick<RunHeader, 'wire'> | undefined): Wire =>
  WIRES[header?.wire ?? 'chat_completions'];
