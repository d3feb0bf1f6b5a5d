import { isObject } from '../../../lib/json.ts';

type Message = Readonly<Record<string, unknown>>;

/** The last answer of the model in a conversation, and what its client has said since. */
export interface LatestTurn {
  readonly answer: Message | undefined;
  readonly since: readonly Message[];
}

/** Of messages that are whatever the client has put there. */
export function latestTurn(messages: unknown): LatestTurn {
  const all = Array.isArray(messages) ? messages.filter(isObject) : [];
  // An answer that the client has begun itself comes after what it says.
  const end = all.at(-1)?.role === 'assistant' ? all.length - 1 : all.length;
  const turn = all.slice(0, end).findLastIndex(({ role }) => role === 'assistant');
  return { answer: all[turn], since: all.slice(turn + 1, end) };
}
