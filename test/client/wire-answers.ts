import { DONE } from './answers.ts';

/** A short answer on one wire. On wires with named events, each payload starts with its type. */
export interface WireAnswer {
  readonly path: string;
  readonly events: readonly string[];
  /** Other events that may end the answer. */
  readonly otherEnds: readonly string[];
}

/** Characters of one to four bytes. */
const PIECES = ['à marée ', '満潮 ', '🌊.'];

const typed = (type: string, more: object = {}): string => JSON.stringify({ type, ...more });
const ERROR = JSON.stringify({ error: { message: 'm', type: 'stream_interrupted' } });

export const COMPLETION: WireAnswer = {
  path: '/v1/completions',
  events: [...PIECES.map((text) => JSON.stringify({ choices: [{ index: 0, text }] })), DONE],
  otherEnds: [ERROR],
};

export const MESSAGE: WireAnswer = {
  path: '/v1/messages',
  events: [
    ...PIECES.map((text) => typed('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })),
    typed('message_stop'),
  ],
  otherEnds: [typed('error', { error: { type: 'api_error', message: 'm' } })],
};

export const RESPONSE: WireAnswer = {
  path: '/v1/responses',
  events: [
    ...PIECES.map((delta, index) => typed('response.output_text.delta', { sequence_number: index, delta })),
    typed('response.completed', { response: { status: 'completed' } }),
  ],
  otherEnds: [
    ...['incomplete', 'cancelled', 'failed'].map((status) =>
      typed(`response.${status}`, { response: { status } }),
    ),
    typed('error', { code: null, message: 'm' }),
  ],
};
