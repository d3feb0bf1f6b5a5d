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

/** The wire that this path, which may have a query, is of or below. */
export function wireAt(url: string): Wire | undefined {
  const [path = ''] = url.split('?', 1);
  return Object.values(WIRES).find((wire) => `${path}/`.startsWith(`/v1${wire.path}/`));
}

/** The wire that a stored run was delivered on. `asked`: what its client says of a run that has no header. */
export const wireOf = ({ records }: Pick<StoredRun, 'records'>, asked?: Pick<RunHeader, 'wire'>): Wire =>
  wireIn(records[0]?.header ?? asked);

/** The same by its header; of a run that has none, the wire that nearly all are on. */
export const wireIn = (header: Pick<RunHeader, 'wire'> | undefined): Wire =>
  WIRES[header?.wire ?? 'chat_completions'];
