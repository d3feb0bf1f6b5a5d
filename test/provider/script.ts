import type { DialectName } from '../../src/config/dialect-names.ts';
import type { Accent } from './accent.ts';
import type { Fault } from './fault.ts';
import type { KeepsAnswers } from './kept-answers.ts';
import type { CompletionRequest } from './request.ts';

/** What the model says in one uncut answer, in order. */
export interface Script {
  /** Completion ids are `<id>-<n>`; `chatcmpl` by default. */
  readonly id?: string;
  /** The model named in every chunk; by default, the one requested. */
  readonly model?: string;
  readonly parts: readonly Part[];
  /** `tool_calls` by default if there is a tool part, else `stop`. */
  readonly finish?: string;
  /** Where the usage goes, if the request asked for it; by default `final`, a chunk of its own with no choices. */
  readonly usage?: 'final' | 'finish_chunk' | 'none';
  /** How text is split into deltas; `token` by default. A number is code points per delta. */
  readonly chunk?: Chunking;
  /** Characters per prompt token; 4 by default. */
  readonly characters_per_token?: number;
  readonly tool_shape?: ToolShape;
  /** The stream's wording; OpenAI's by default. */
  readonly accent?: Accent;
}

export type Part =
  | { readonly text: string }
  | { readonly refusal: string }
  | { readonly reasoning: string; readonly field?: 'reasoning_content' | 'reasoning' }
  | { readonly tool: ToolCall }
  /** Parallel calls: all of them start, then their arguments arrive interleaved. */
  | { readonly tools: readonly ToolCall[] };

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** Raw JSON text, sent verbatim: it may be empty or malformed. */
  readonly arguments: string;
}

export type Chunking = 'token' | 'part' | number;

/**
 * How tool calls look on the wire. `openai`: id and name first, then fragments by index. `whole`: one delta per call.
 * `no_index`: whole and without `index`, like Gemini. `repeated_index`: every call has index 0, and only a new id
 * separates them. `id_repeated`: later fragments repeat the id, with an empty name.
 */
export type ToolShape = 'openai' | 'whole' | 'no_index' | 'repeated_index' | 'id_repeated';

/**
 * How the model responds to a request to continue a prefix of its text. "The rest" is what follows the prefix in the
 * script, including any whitespace that was trimmed from the prefix's end.
 */
export type Continuation =
  /** After a prefill, exactly the rest. After a nudge, the words that it quotes, then the rest. */
  | 'obedient'
  /** Exactly the rest, whatever a nudge asks to repeat. */
  | 'straight_on'
  /** The last 40 characters of the prefix, then the rest. */
  | 'repeats_tail'
  /** The whole answer from the top. */
  | 'restarts'
  /** After a nudge, `Sure, here is the rest:` and a newline, then the rest. Obedient to a prefill. */
  | 'preamble'
  /** The rest without its leading whitespace. */
  | 'loses_whitespace'
  /**
   * After a prefill, the prefix in one or two deltas, with its trailing space moved to the next delta like Mistral.
   * Obedient to a nudge.
   */
  | 'echoes_prefix'
  /** If the prefix ends within a word: that word from its beginning, then the rest. */
  | 'repeats_word'
  /** The rest, but with a sentence and `finish_reason: stop` in place of its tool calls. */
  | 'prose_instead_of_tool'
  /** HTTP 400 to a prefill, with Anthropic's message. Obedient to a nudge. */
  | 'rejects_prefill'
  /** The whole answer after a prefill. Obedient to a nudge. */
  | 'ignores_prefill';

/** A request for the rest of an answer. */
export interface Asked {
  readonly whole: string;
  /** The part of the answer that the request includes. */
  readonly sent: string;
  /** The words that a nudge quotes; empty if it quotes none, and in a prefill. */
  readonly anchor: string;
}

/**
 * The dialect whose fields turn a trailing assistant message into a prefill. Without them, the message is an ordinary
 * finished turn, and the answer starts from the top. `any`: no fields are needed.
 */
export type PrefillDialect = 'any' | DialectName | IsPrefill;

/** Whether a request that ends with an assistant message is a prefill. */
export type IsPrefill = (request: CompletionRequest, path: string) => boolean;

/** A script, and what goes wrong along the way. */
export interface Plan extends Script {
  /** One per consecutive request of a run; `null` or a missing entry means no fault. */
  readonly faults?: readonly (Fault | null | undefined)[];
  /** `straight_on` by default. Repeated words are split into tokens again, and counted again. */
  readonly continuation?: Continuation;
  /** The text with which the model answers a request for the rest, in place of `continuation`. */
  readonly says?: Readonly<Partial<Record<'prefill' | 'nudge', (asked: Asked) => string>>>;
  /** The provider keeps answers that have lost their connection; faults then strike the connection. */
  readonly keeps?: KeepsAnswers;
  readonly prefill?: PrefillDialect;
  /**
   * A prefill is continued exactly, or echoed, however the model treats a nudge. By default, what the `prefill` dialect
   * is known to do, if anything.
   */
  readonly prefilled?: 'exact' | 'echo';
  /** A prefill without text continues from its reasoning; by default, only for DeepSeek. */
  readonly thinksOn?: boolean;
  /** Repeats its reasoning at the start of every continuation. */
  readonly rethinks?: boolean;
  /** Pause before each write; 0 by default, which is as fast as the client reads. */
  readonly delay_ms?: number;
  /** The unit of a write; by default, each event if there is a delay, else everything at once. */
  readonly write?: 'event' | 'whole' | 'bytes';
}
