import type { Delta } from '../../../plans/delta.ts';
import { type Dialect, PLAIN } from '../common/dialect.ts';
import { type OpenFields, overlay } from '../common/document.ts';
import { isUnreadableText } from '../common/event-data.ts';
import type { Wire } from '../common/wire.ts';
import type { ChatChoice } from './chat-chunk.ts';
import { ChunkAnswerWriter } from './chunk-answer-writer.ts';
import { chunkDeliveredEvents } from './chunk-delivered-events.ts';
import { type ChoiceFold, chunkDocument, isFinished } from './chunk-document.ts';
import type { EnvelopeMaker } from './chunk-envelope.ts';
import { type ChunkEvent, ChunkReader } from './chunk-reader.ts';
import { CompletionsEnvelope } from './completions-envelope.ts';
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

const envelopeOf: EnvelopeMaker = (first) => new CompletionsEnvelope(first);

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
  writer: (options) => new ChunkAnswerWriter(options, envelopeOf),
  delivered: chunkDeliveredEvents(() => new CompletionsReader(), envelopeOf),
  document: chunkDocument('text_completion', 'text', () => new CompletionChoiceFold()),
};
