import type { WireName } from '../checkpoint/journal.ts';
import { isObject, parsedJson } from '../lib/json.ts';
import type { ErrorName, Status } from './fault.ts';

/** A failure in the wording of each API. */
interface Wording {
  readonly message: string;
  /** For OpenAI's wires. */
  readonly openai: { readonly status: Status; readonly type: string; readonly code: string | null };
  /** For `/v1/messages`. */
  readonly messages: { readonly status: Status; readonly type: string };
}

const OVERLOADED: Wording = {
  message: 'The server is overloaded. Please try again later.',
  openai: { status: 503, type: 'service_unavailable_error', code: 'server_is_overloaded' },
  messages: { status: 529, type: 'overloaded_error' },
};
const RATE_LIMIT: Wording = {
  message: 'Rate limit reached for requests per minute.',
  openai: { status: 429, type: 'rate_limit_error', code: 'rate_limit_exceeded' },
  messages: { status: 429, type: 'rate_limit_error' },
};
const SERVER_ERROR: Wording = {
  message: 'The server had an error while processing your request. Sorry about that!',
  openai: { status: 500, type: 'server_error', code: null },
  messages: { status: 500, type: 'api_error' },
};

const WORDING: Readonly<Record<ErrorName | Status, Wording>> = {
  overloaded: OVERLOADED,
  rate_limit: RATE_LIMIT,
  server_error: SERVER_ERROR,
  429: RATE_LIMIT,
  500: SERVER_ERROR,
  503: OVERLOADED,
  529: OVERLOADED,
};

/** The equivalent HTTP status for an answer that isn't streamed. */
export const statusOf = (wire: WireName, error: ErrorName): Status =>
  WORDING[error][wire === 'messages' ? 'messages' : 'openai'].status;

/** The JSON body of an error response with this status. */
export function refusalBody(wire: WireName, status: Status): string {
  const wording = WORDING[status];
  return JSON.stringify(wire === 'messages' ? messagesError(wording) : { error: openaiError(wording) });
}

/** Events of an answer in wire format. */
export interface SentEvents {
  readonly first: string | undefined;
  readonly last: string | undefined;
}

/** The events with which a provider reports the failure, after which the body ends. `sent`: events sent so far. */
export function errorEvents(wire: WireName, error: ErrorName, sent: SentEvents): string {
  const wording = WORDING[error];
  switch (wire) {
    case 'messages':
      return namedEvent('error', messagesError(wording));
    case 'responses':
      return responsesFailure(wording, sent);
    default:
      return `data: ${JSON.stringify({ error: openaiError(wording) })}\n\n`;
  }
}

const openaiError = ({ message, openai: { type, code } }: Wording): object => ({
  message,
  type,
  param: null,
  code,
});

const messagesError = ({ message, messages: { type } }: Wording): object => ({
  type: 'error',
  error: { details: null, type, message },
});

/** Two events that continue the numbering of the earlier ones. */
function responsesFailure(wording: Wording, { first, last }: SentEvents): string {
  const { message, openai } = wording;
  const { type } = openai;
  const code = openai.code ?? type;
  const { response } = dataOf(first);
  const { sequence_number } = dataOf(last);
  const next = typeof sequence_number === 'number' ? sequence_number + 1 : 0;
  const error = { type, code, message, param: null };
  const failed = { ...(isObject(response) && response), status: 'failed', error: { code, message } };
  return [
    namedEvent('error', { type: 'error', sequence_number: next, error }),
    namedEvent('response.failed', {
      type: 'response.failed',
      sequence_number: next + 1,
      response: failed,
    }),
  ].join('');
}

const namedEvent = (name: string, data: object): string =>
  `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

/** The JSON object of an event in wire format; empty if there is none. */
function dataOf(event: string | undefined): Readonly<Record<string, unknown>> {
  const [, data = ''] = /^data: ?(.*)$/m.exec(event ?? '') ?? [];
  const parsed = parsedJson(data);
  return isObject(parsed) ? parsed : {};
}
