import { isEmpty, isObject } from '../../../lib/json.ts';
import type { Delta } from '../../../plans/delta.ts';
import { type Dialect, PLAIN } from '../common/dialect.ts';
import { type OpenFields, overlay } from '../common/document.ts';
import { isUnreadableText } from '../common/event-data.ts';
import type { Wire } from '../common/wire.ts';
import { ChunkAnswerWriter } from './chunk-answer-writer.ts';
import { chunkDeliveredEvents } from './chunk-delivered-events.ts';
import { type ChoiceFold, chunkDocument, isFinished } from './chunk-document.ts';
import {
  adopted,
  type ChunkEnvelope,
  type ChunkForm,
  choicesWith,
  chunkOf,
  envelopeFrom,
  fits,
} from './chunk-envelope.ts';
import { type ChatChoice, type ChunkEvent, ChunkReader } from './chunk-reader.ts';
import {
  type CompletionRequest,
  checkCompletionRequest,
  completionContinuationOf,
  completionFactsOf,
} from './completions-request.ts';

/** Reads the events of one attempt on `/v1/completions`: choices have their text at the top, and no role. */
class CompletionsReader extends ChunkReader {
  protected override said({ text }: ChatChoice): readonly Delta[] | undefined {
    if (isUnreadableText(text)) return undefined;
    return typeof text === 'string' && text !== '' ? [{ kind: 'text', text }] : [];
  }

  protected override hasRole(): boolean {
    return false;
  }
}

class CompletionChoiceFold implements ChoiceFold {
  extra_characters = 0;
  #text = '';
  /** What else is in the choice. */
  readonly #fields: OpenFields = {};

  add({ text, ...fields }: ChatChoice): void {
    if (typeof text === 'string') this.#text += text;
    this.extra_characters += overlay(this.#fields, fields);
  }

  document(): object | undefined {
    return isFinished(this.#fields) ? { text: this.#text, ...this.#fields } : undefined;
  }
}

/** Completion chunks, whose answer has neither a role nor calls. */
const completionForm: ChunkForm = {
  envelopeOf: (first) => envelopeFrom(first, 'text_completion'),

  payloadOf: (envelope, { chunk, payload }) => (fits(envelope, chunk) ? payload : adopted(envelope, chunk)),

  finishOf(envelope, chunk, _role, usage) {
    const finish = { ...chunk, ...(usage && isObject(chunk.usage) && { usage }) };
    return adopted(envelope, finish, choicesWith(chunk, { text: '' }));
  },

  textChunk(envelope, deltas) {
    let text = '';
    for (const delta of deltas) if (delta.kind === 'text') text += delta.text;
    return chunkWith(envelope, text, null);
  },

  toolChunk() {
    throw new Error('a completion has no tool calls');
  },

  finishChunk: (envelope, reason) => chunkWith(envelope, '', reason),

  emptyChunk: (envelope, holdfast) => chunkWith(envelope, '', null, holdfast && { holdfast }),

  isPlain({ choices }) {
    const [{ text, index: _index, ...rest }] = choices as [ChatChoice];
    return typeof text === 'string' && Object.values(rest).every(isEmpty);
  },
};

const chunkWith = (
  envelope: ChunkEnvelope,
  text: string,
  finish_reason: string | null,
  more?: object,
): string => chunkOf(envelope, { text, index: 0, logprobs: null, finish_reason }, more);

/** Every provider continues a prompt. */
const dialect: Dialect = {
  ...PLAIN,
  name: 'generic',
  about: { speakers: 'everybody' },
  prefill: true,
  echoes: false,
  keepsSpace: true,
};

/** `/v1/completions` */
export const completionsWire: Wire<ChunkEvent, CompletionRequest> = {
  name: 'completions',
  path: '/completions',
  modes: ['resume', 'prefill', 'replay', 'restart'],
  isKept: true,
  dialect,
  request: checkCompletionRequest,
  facts: completionFactsOf,
  continuation: completionContinuationOf,
  reader: () => new CompletionsReader(),
  writer: (options) => new ChunkAnswerWriter(options, completionForm),
  delivered: chunkDeliveredEvents(() => new CompletionsReader(), completionForm),
  document: chunkDocument('text_completion', 'text', () => new CompletionChoiceFold()),
};
