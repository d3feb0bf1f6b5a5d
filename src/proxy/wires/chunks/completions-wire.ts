import { isEmpty, isObject } from '../../../lib/json.ts';
import type { Fields } from '../../../lib/json-body.ts';
import type { Delta } from '../../../plans/delta.ts';
import { type Dialect, PLAIN } from '../common/dialect.ts';
import { type OpenFields, overlay } from '../common/document.ts';
import { isUnreadableText } from '../common/event-data.ts';
import { promptSize } from '../common/prompt-size.ts';
import {
  type Continuation,
  type ContinuationFacts,
  checkModel,
  checkStop,
  checkStreamOptions,
  constraintsOf,
  type RequestFacts,
} from '../common/request.ts';
import type { Wire, WireRequest } from '../common/wire.ts';
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

/** The parts of a completion request that determine how a run may be continued. */
export interface CompletionRequest extends WireRequest {
  /** A list contains several prompts, or the tokens of one. */
  readonly prompt?: unknown;
  readonly suffix?: string | null;
  readonly echo?: boolean | null;
  readonly best_of?: number | null;
  readonly n?: number | null;
  readonly logprobs?: number | null;
  readonly max_tokens?: number | null;
  readonly stop?: string | readonly string[] | null;
  readonly stream_options?: { readonly include_usage?: boolean; readonly [option: string]: unknown } | null;
  readonly response_format?: { readonly type: string; readonly [detail: string]: unknown } | null;
}

/** Validates only what a run relies on; the provider validates the rest. Throws `ApiError`. */
export function checkCompletionRequest(fields: Fields): CompletionRequest {
  checkModel(fields);
  checkStreamOptions(fields);
  checkStop(fields);
  return fields as unknown as CompletionRequest;
}

/** Reads unvalidated fields defensively. */
export function completionFactsOf(request: CompletionRequest): RequestFacts {
  const { prompt, suffix, echo, best_of, logprobs, max_tokens, stop, stream_options } = request;
  const choices = promptsOf(prompt) * (typeof request.n === 'number' ? request.n : 1);
  const isAlone = choices === 1 && (best_of ?? 1) === 1;
  const hasText = typeof prompt === 'string' && !suffix && !echo;
  const { expectsJson, isGuided } = constraintsOf(request);
  return {
    schemas: new Map(),
    hasTools: false,
    choices,
    spliceable: isAlone && hasText && (logprobs ?? undefined) === undefined,
    onlyReplay: isGuided,
    expectsJson,
    stops: [stop].flat().filter((sequence) => typeof sequence === 'string'),
    max_tokens: typeof max_tokens === 'number' ? max_tokens : Infinity,
    usageAsked: stream_options?.include_usage === true,
    legacyFunctions: false,
    promptSize: () => promptSize([prompt]),
  };
}

/** Appends the answer so far to the prompt, which is what this wire continues by design. */
function completionContinuationOf({
  request,
  mode,
  prefix,
  tokens_left,
}: ContinuationFacts<CompletionRequest>): Continuation<CompletionRequest> {
  if (mode !== 'prefill') return { body: request, added_messages: [] };
  return {
    body: {
      ...request,
      ...(typeof request.max_tokens === 'number' && { max_tokens: Math.max(1, tokens_left) }),
      prompt: `${request.prompt}${prefix.sent}`,
      echo: false,
    },
    added_messages: [prefix.sent.length],
  };
}

/** A list of tokens is one prompt; other lists contain one prompt per element. */
function promptsOf(prompt: unknown): number {
  return Array.isArray(prompt) && prompt.length > 0 && typeof prompt[0] !== 'number' ? prompt.length : 1;
}

/** Reads the events of one attempt on `/v1/completions`, whose choices have text at the top and no role. */
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
  extra_bytes = 0;
  #text = '';
  /** The other fields of the choice. */
  readonly #fields: OpenFields = {};

  add({ text, ...fields }: ChatChoice): void {
    if (typeof text === 'string') this.#text += text;
    this.extra_bytes += overlay(this.#fields, fields);
  }

  document(): object | undefined {
    return isFinished(this.#fields) ? { text: this.#text, ...this.#fields } : undefined;
  }
}

/** The form of completion chunks, which have neither a role nor calls. */
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
