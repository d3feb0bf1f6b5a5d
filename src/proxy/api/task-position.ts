import { hash } from 'node:crypto';
import { apiError } from '../../lib/errors.ts';
import { parsedJson } from '../../lib/json.ts';

/** What a client has seen of a task's numbered steps or calls. */
export interface SeenNumbers {
  /** The highest number it has seen. */
  readonly last: number;
  /** Entries that may still change, with the {@link tokenOf} of the client's version. Ascending. */
  readonly open: ReadonlyMap<number, string>;
}

/** A client's position in the events of a task. Encoded as the `id:` of an event. */
export interface TaskPosition {
  /** See `TaskState`. A position from before the task was deleted is ignored. */
  readonly era: string;
  /** The token of the task itself; empty before its first event. */
  readonly token: string;
  readonly steps: SeenNumbers;
  readonly calls: SeenNumbers;
}

/** How many open steps, and open calls, a position tracks. If there are more, the oldest are no longer watched. */
export const OPEN_MAX = 64;
/** The size of a position with that many of both. */
const ID_CHARACTERS_MAX = 8192;
const TOKEN_CHARACTERS = 8;

const NO_NUMBERS: SeenNumbers = { last: 0, open: new Map() };

export const nothingSeen = (era: string): TaskPosition => ({
  era,
  token: '',
  steps: NO_NUMBERS,
  calls: NO_NUMBERS,
});

/** A short hash that identifies a version of an entry. */
export const tokenOf = (told: readonly unknown[]): string =>
  hash('sha256', JSON.stringify(told), 'base64url').slice(0, TOKEN_CHARACTERS);

export const positionId = ({ era, token, steps, calls }: TaskPosition): string =>
  Buffer.from(JSON.stringify([era, token, ...flat(steps), ...flat(calls)])).toString('base64url');

/** Decodes the `id:` of an event. `param`: its source, for the error. Throws `invalid_field`. */
export function positionIn(param: string, id: unknown): TaskPosition {
  const text = typeof id === 'string' && id.length <= ID_CHARACTERS_MAX ? id : '';
  const values = parsedJson(Buffer.from(text, 'base64url').toString());
  const [era, token, ...numbers] = Array.isArray(values) && values.length === 6 ? values : [];
  const steps = seenIn(numbers[0], numbers[1]);
  const calls = seenIn(numbers[2], numbers[3]);
  if (typeof era === 'string' && typeof token === 'string' && steps && calls)
    return { era, token, steps, calls };
  throw apiError('invalid_field', { param, expected: 'the id of an event of this task' });
}

const flat = ({ last, open }: SeenNumbers) => [last, [...open]];

function seenIn(last: unknown, open: unknown): SeenNumbers | undefined {
  if (!isNumber(last) || !Array.isArray(open) || open.length > OPEN_MAX) return undefined;
  const entries = open.filter(isEntry);
  if (entries.length < open.length) return undefined;
  return { last, open: new Map(entries.toSorted(([one], [other]) => one - other)) };
}

const isNumber = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

const isEntry = (entry: unknown): entry is [number, string] =>
  Array.isArray(entry) && entry.length === 2 && isNumber(entry[0]) && typeof entry[1] === 'string';
