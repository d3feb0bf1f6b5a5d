import type { Trouble } from './task.ts';

/** Past the opening events of an answer, on every wire, and into its first words. */
const IN_WORDS = { event: 14 } as const;
const IN_ARGUMENTS = { within: 30 } as const;

export const TROUBLES: readonly Trouble[] = [
  { name: 'reset in the text', turn: 'command', fault: { kind: 'reset', at: IN_WORDS }, times: 1 },
  { name: 'three resets in the text', turn: 'command', fault: { kind: 'reset', at: IN_WORDS }, times: 3 },
  { name: 'reset in the arguments', turn: 'file', fault: { kind: 'reset', at: IN_ARGUMENTS }, times: 1 },
  {
    name: 'two clean ends in the arguments',
    turn: 'file',
    fault: { kind: 'clean_eof', at: { event: 30 } },
    times: 2,
  },
  {
    name: 'reset before the first event',
    turn: 'command',
    fault: { kind: 'reset', at: { before_headers: true } },
    times: 1,
  },
  { name: 'reset in the last words', turn: 'end', fault: { kind: 'reset', at: { event: 10 } }, times: 1 },
  {
    name: 'two 529s',
    turn: 'command',
    fault: {
      kind: 'status',
      status: 529,
      body: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
    },
    times: 2,
  },
  {
    name: 'overloaded in the text',
    turn: 'command',
    fault: { kind: 'error_anthropic', at: IN_WORDS },
    times: 1,
  },
  {
    name: 'overloaded in the arguments',
    turn: 'file',
    fault: { kind: 'error_anthropic', at: { event: 30 } },
    times: 1,
  },
  { name: 'stall in the text', turn: 'command', fault: { kind: 'silence', at: IN_WORDS }, times: 1 },
  { name: 'stall in the arguments', turn: 'file', fault: { kind: 'silence', at: { event: 30 } }, times: 1 },
  {
    name: 'replica killed in the text',
    turn: 'command',
    fault: { kind: 'silence', at: IN_WORDS },
    times: 1,
    kills: true,
  },
  {
    name: 'replica killed in the arguments',
    turn: 'file',
    fault: { kind: 'silence', at: { event: 30 } },
    times: 1,
    kills: true,
  },
  // Longer than agents wait for an event.
  { name: 'arguments that take 330 s', turn: 'file', takes_ms: 330_000, times: 1 },
];
