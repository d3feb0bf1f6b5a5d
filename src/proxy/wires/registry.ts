import type { WireName } from '../../checkpoint/journal.ts';
import type { StoredRun } from '../../checkpoint/store.ts';
import { chatWire } from './chat-wire.ts';
import type { Wire } from './wire.ts';

export const WIRES: Readonly<Record<WireName, Wire>> = { chat_completions: chatWire };

/** The wire that a stored run was delivered on; of a damaged one that no longer says so, the one nearly all are on. */
export const wireOf = ({ records }: Pick<StoredRun, 'records'>): Wire =>
  WIRES[records[0]?.header?.wire ?? 'chat_completions'];
