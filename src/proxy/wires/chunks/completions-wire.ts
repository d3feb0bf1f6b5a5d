import { type Dialect, PLAIN } from '../common/dialect.ts';
import type { Wire } from '../common/wire.ts';
import { ChunkAnswerWriter } from './chunk-answer-writer.ts';
import { chunkDeliveredEvents } from './chunk-delivered-events.ts';
import type { EnvelopeMaker } from './chunk-envelope.ts';
import type { ChunkEvent } from './chunk-reader.ts';
import { completionContinuationOf } from './completions-continuation.ts';
import { completionsDocument } from './completions-document.ts';
import { CompletionsEnvelope } from './completions-envelope.ts';
import { CompletionsReader } from './completions-reader.ts';
import { type CompletionRequest, checkCompletionRequest, completionFactsOf } from './completions-request.ts';

const envelopeOf: EnvelopeMaker = (first) => new CompletionsEnvelope(first);

/** A prompt is gone on with, whoever does it. */
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
  document: completionsDocument,
};
