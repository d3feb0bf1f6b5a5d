import type { WireName } from '../../src/checkpoint/journal.ts';
import type { Sent } from './overflow-deployment.ts';

/** Each round is a question, two parallel calls, their results, and an answer. */
const ROUNDS = 8;

export type MessageWire = Exclude<WireName, 'completions'>;
export const MESSAGE_WIRES: readonly MessageWire[] = ['chat_completions', 'messages', 'responses'];

export const INSTRUCTIONS = 'You know the tides.';
export const QUESTION = 'And what about tomorrow?';
export const PORTS = ['Brest', 'Lorient'] as const;

const id = (round: number, port: string) => `call_${round}_${port}`;
const found = (round: number, port: string) =>
  `High water at ${port} on day ${round} is at ${round} o'clock.`;
const asked = (round: number) => `When is high water on day ${round}?`;
const answered = (round: number) => `On day ${round} it is at ${round} o'clock in both places.`;

type Round = (round: number) => readonly Sent[];

const CHAT: Round = (round) => [
  { role: 'user', content: asked(round) },
  {
    role: 'assistant',
    content: null,
    tool_calls: PORTS.map((port) => ({
      id: id(round, port),
      type: 'function',
      function: { name: 'tides', arguments: JSON.stringify({ port, day: round }) },
    })),
  },
  ...PORTS.map((port) => ({ role: 'tool', tool_call_id: id(round, port), content: found(round, port) })),
  { role: 'assistant', content: answered(round) },
];

const MESSAGES: Round = (round) => [
  { role: 'user', content: asked(round) },
  {
    role: 'assistant',
    content: [
      { type: 'text', text: 'Let me see.' },
      ...PORTS.map((port) => ({
        type: 'tool_use',
        id: id(round, port),
        name: 'tides',
        input: { port, day: round },
      })),
    ],
  },
  {
    role: 'user',
    content: PORTS.map((port) => ({
      type: 'tool_result',
      tool_use_id: id(round, port),
      content: found(round, port),
    })),
  },
  { role: 'assistant', content: [{ type: 'text', text: answered(round) }] },
];

const RESPONSES: Round = (round) => [
  { type: 'message', role: 'user', content: asked(round) },
  { type: 'reasoning', id: `rs_${round}`, summary: [] },
  ...PORTS.map((port) => ({
    type: 'function_call',
    call_id: id(round, port),
    name: 'tides',
    arguments: JSON.stringify({ port, day: round }),
  })),
  ...PORTS.map((port) => ({
    type: 'function_call_output',
    call_id: id(round, port),
    output: found(round, port),
  })),
  { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: answered(round) }] },
];

const ROUND_ON: Readonly<Record<MessageWire, Round>> = {
  chat_completions: CHAT,
  messages: MESSAGES,
  responses: RESPONSES,
};

/** The messages of a conversation without its instructions: `rounds` rounds, and a last question. */
export function historyOn(wire: MessageWire, rounds = ROUNDS): readonly Sent[] {
  const said = Array.from({ length: rounds }, (_, round) => ROUND_ON[wire](round)).flat();
  return [...said, { role: 'user', content: QUESTION }];
}

/** A request with instructions and `history`. */
export function requestOn(wire: MessageWire, model: string, history: readonly Sent[], more: object = {}) {
  switch (wire) {
    case 'chat_completions':
      return {
        model,
        stream: true,
        temperature: 0.5,
        messages: [{ role: 'system', content: INSTRUCTIONS }, ...history],
        ...more,
      };
    case 'messages':
      return { model, stream: true, max_tokens: 100, system: INSTRUCTIONS, messages: history, ...more };
    case 'responses':
      return {
        model,
        stream: true,
        instructions: INSTRUCTIONS,
        input: [{ type: 'message', role: 'developer', content: 'Be brief.' }, ...history],
        ...more,
      };
  }
}

/** The ids of the calls and of the results in a conversation, on any wire, in order. */
export function callsIn(messages: readonly Sent[]): { calls: unknown[]; results: unknown[] } {
  const items = messages.flatMap((message): Sent[] => {
    const { content, tool_calls } = message as { content?: unknown; tool_calls?: Sent[] };
    return [message, ...(tool_calls ?? []), ...(Array.isArray(content) ? (content as Sent[]) : [])];
  });
  const ids = (field: string, types: readonly string[]) =>
    items.filter(({ type, role }) => types.includes(String(type ?? role))).map((item) => item[field]);
  return {
    calls: [...ids('id', ['function', 'tool_use']), ...ids('call_id', ['function_call'])],
    results: [
      ...ids('tool_call_id', ['tool']),
      ...ids('tool_use_id', ['tool_result']),
      ...ids('call_id', ['function_call_output']),
    ],
  };
}
