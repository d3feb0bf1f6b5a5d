import type { Answer, Step } from '../answer.ts';
import type { Wire } from '../cases.ts';
import { ChatTelling, chatDocument } from './chat.ts';
import { MessagesTelling, messagesDocument } from './messages.ts';
import { ResponsesTelling, responsesDocument } from './responses.ts';

/** Says an answer as the events of its wire, ready to be sent. */
export interface Telling {
  /** What comes before the first step. */
  begin(): string;
  step(step: Step): string;
  /** What proves that the answer is whole. */
  end(): string;
}

export interface Envelope {
  /** Unique for each request. */
  readonly id: string;
  readonly model: string;
  readonly has_calls: boolean;
  /** Chat completions report it only where they are asked to. */
  readonly usage: boolean;
}

export function tellingOn(wire: Wire, envelope: Envelope): Telling {
  switch (wire) {
    case 'chat':
      return new ChatTelling(envelope);
    case 'messages':
      return new MessagesTelling(envelope);
    case 'responses':
      return new ResponsesTelling(envelope);
  }
}

/** The same answer as one JSON document. */
export function documentOn(wire: Wire, envelope: Envelope, answer: Answer): string {
  const documents = { chat: chatDocument, messages: messagesDocument, responses: responsesDocument };
  return JSON.stringify(documents[wire](envelope, answer));
}

const MESSAGE = 'The server had an error while processing your request.';
/** What Anthropic answers to a request that newer models refuse. */
const NO_PREFILL =
  'This model does not support assistant message prefill. The conversation must end with a user message.';

interface Refusal {
  readonly type: string;
  /** On messages. */
  readonly messages_type: string;
  readonly code: string | null;
  readonly message: string;
}

const REFUSALS: Readonly<Record<number, Refusal>> = {
  400: {
    type: 'invalid_request_error',
    messages_type: 'invalid_request_error',
    code: null,
    message: NO_PREFILL,
  },
  429: {
    type: 'rate_limit_error',
    messages_type: 'rate_limit_error',
    code: 'rate_limit_exceeded',
    message: 'Rate limit reached for requests per minute.',
  },
  503: {
    type: 'server_error',
    messages_type: 'overloaded_error',
    code: 'server_error',
    message: 'Overloaded',
  },
};

const FAILURE: Refusal = {
  type: 'server_error',
  messages_type: 'api_error',
  code: 'server_error',
  message: MESSAGE,
};

/** A body of an error answer, and the payload of an error event. */
export function errorOn(wire: Wire, status: number): object {
  const { type, messages_type, code, message } = REFUSALS[status] ?? FAILURE;
  if (wire === 'messages') return { type: 'error', error: { type: messages_type, message } };
  return { error: { type, message, code, param: null } };
}

/** As the providers of these wires report a failure in the middle of an answer. */
export function errorEventOn(wire: Wire): string {
  if (wire === 'chat') return `data: ${JSON.stringify(errorOn(wire, 500))}\n\n`;
  if (wire === 'messages') return `event: error\ndata: ${JSON.stringify(errorOn(wire, 503))}\n\n`;
  const event = { type: 'error', sequence_number: 900, code: 'server_error', message: MESSAGE, param: null };
  return `event: error\ndata: ${JSON.stringify(event)}\n\n`;
}
