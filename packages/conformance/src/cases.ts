export const WIRES = ['chat', 'messages', 'responses'] as const;
/** Where in the answer the trouble comes. */
export const STATES = ['text', 'in_call', 'settled_call', 'second_call'] as const;
export const MANNERS = ['streaming', 'document'] as const;

export type Wire = (typeof WIRES)[number];
export type State = (typeof STATES)[number];
export type Manner = (typeof MANNERS)[number];

/** In the middle of an answer. */
const CUTS = ['reset', 'clean_close', 'stall', 'error_event'] as const;
const STATUSES = ['http_429', 'http_500', 'http_503'] as const;

export type Trouble =
  | 'none'
  | (typeof CUTS)[number]
  | (typeof STATUSES)[number]
  | 'goaway'
  /** Longer than the idle limit of a client, then the rest of the answer comes. */
  | 'silence_before'
  | 'silence_within'
  /** The gateway is killed. */
  | 'replica_death';

export interface Case {
  /** `wire/manner/state/trouble`, and `/always` where every attempt fails. */
  readonly id: string;
  readonly wire: Wire;
  readonly manner: Manner;
  readonly state: State;
  readonly trouble: Trouble;
  /** Every attempt fails without progress, not the first one alone. */
  readonly always: boolean;
}

export interface Applicable {
  /** The scripted provider speaks HTTP/2. */
  readonly http2: boolean;
  /** The suite can kill the gateway. */
  readonly kill: boolean;
}

/** All cases that apply. Those in which a clock decides come first: the others run while they wait. */
export function allCases({ http2, kill }: Applicable): readonly Case[] {
  const cases: Case[] = [];
  for (const wire of WIRES) {
    const add = (manner: Manner, states: readonly State[], troubles: readonly Trouble[], always = false) => {
      for (const state of states)
        for (const trouble of troubles) {
          const id = [wire, manner, state, trouble, ...(always ? ['always'] : [])].join('/');
          cases.push({ id, wire, manner, state, trouble, always });
        }
    };
    add('streaming', STATES, ['none', ...CUTS, ...(http2 ? (['goaway'] as const) : [])]);
    add('streaming', ['text'], [...STATUSES, 'silence_before', 'silence_within']);
    add('streaming', ['text'], ['reset', 'clean_close', 'error_event', 'http_500'], true);
    add('document', ['text', 'settled_call'], ['none', 'reset', 'clean_close', 'stall']);
    add('document', ['text'], STATUSES);
    add('document', ['text'], ['reset', 'http_500'], true);
    if (kill) add('streaming', ['text'], ['replica_death']);
  }
  return cases.sort((one, other) => Number(isPatient(other)) - Number(isPatient(one)));
}

const isPatient = ({ trouble }: Case): boolean => trouble === 'stall' || trouble.startsWith('silence');

/** Those whose id has one of the words in it; all if there are no words. */
export const chosen = (cases: readonly Case[], words: readonly string[]): readonly Case[] =>
  words.length === 0 ? cases : cases.filter(({ id }) => words.some((word) => id.includes(word)));
