import type { DialectName } from '../../src/config/dialect-names.ts';
import type { Accent } from './accent.ts';
import type { Fault } from './fault.ts';
import type { KeepsAnswers } from './kept-answers.ts';
import type { CompletionRequest } from './request.ts';

/** What the model says in one uncut answer, in this order. */
export interface Script {
  /** Completion ids are `<id>-<n>`; default `chatcmpl`. */
  readonly id?: string;
  /** The model named in every chunk; default the one asked for. */
  readonly model?: string;
  readonly parts: readonly Part[];
  /** Default `tool_calls` if there is a tool part, else `stop`. */
  readonly finish?: string;
  /** Where the usage goes, if the request asked for it; default `final`, a chunk of its own with no choices. */
  readonly usage?: 'final' | 'finish_chunk' | 'none';
  /** How text is split into deltas; default `token`. A number is code points per delta. */
  readonly chunk?: Chunking;
  /** How its prompts are counted; default 4. */
  readonly characters_per_token?: number;
  readonly tool_shape?: ToolShape;
  /** How it is worded; default as OpenAI does. */
  readonly accent?: Accent;
}

export type Part =
  | { readonly text: string }
  | { readonly refusal: string }
  | { readonly reasoning: string; readonly field?: 'reasoning_content' | 'reasoning' }
  | { readonly tool: ToolCall }
  /** Parallel calls: all are started, then their arguments arrive interleaved. */
  | { readonly tools: readonly ToolCall[] };

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** Raw JSON text, sent as it is: it may be empty or broken. */
  readonly arguments: string;
}

export type Chunking = 'token' | 'part' | number;

/**
 * How tool calls look on the wire. `openai`: id and name first, then fragments by index. `whole`: one delta per
 * call. `no_index`: whole and without `index`, as Gemini. `repeated_index`: every call has index 0 and only a new
 * id tells them apart. `id_repeated`: later fragments repeat the id, with an empty name.
 */
export type ToolShape = 'openai' | 'whole' | 'no_index' | 'repeated_index' | 'id_repeated';

/**
 * What the model does with a request to continue a prefix of its text. What follows the prefix in the script is
 * "the rest"; it begins with the whitespace at which the prefix was trimmed.
 */
export type Continuation =
  /** Exactly the rest of a prefill. The words that a nudge quotes, then the rest. */
  | 'obedient'
  /** Exactly the rest, whatever a nudge asks to be repeated. */
  | 'straight_on'
  /** The last 40 characters of the prefix, then the rest. */
  | 'repeats_tail'
  /** The whole answer from the top. */
  | 'restarts'
  /** `Sure, here is the rest:` and a newline, then the rest. Obedient to a prefill. */
  | 'preamble'
  /** The rest without the whitespace it begins with. */
  | 'loses_whitespace'
  /** The prefix in one or two deltas, its trailing space moved to the next one as Mistral does. Obedient to a nudge. */
  | 'echoes_prefix'
  /** If the prefix ends within a word: that word from its beginning, then the rest. */
  | 'repeats_word'
  /** The rest with its tool calls replaced by a sentence and `finish_reason: stop`. */
  | 'prose_instead_of_tool'
  /** HTTP 400 to a prefill, in Anthropic's words. Obedient to a nudge. */
  | 'rejects_prefill'
  /** The whole answer to a prefill. Obedient to a nudge. */
  | 'ignores_prefill';

/** A request for the rest of an answer. */
export interface Asked {
  readonly whole: string;
  /** What the request brings of it. */
  readonly sent: string;
  /** The words that a nudge quotes; empty where it quotes none, and in a prefill. */
  readonly anchor: string;
}

/**
 * Whose fields make a trailing assistant message a prefill; without them it is an ordinary closed turn and the
 * answer starts from the top. `any`: none are needed.
 */
export type PrefillDialect = 'any' | DialectName | IsPrefill;

/** Whether a request that ends with an assistant message is a prefill. */
export type IsPrefill = (request: CompletionRequest, path: string) => boolean;

/** A script and what goes wrong while it is told. */
export interface Plan extends Script {
  /** One per consecutive request of a run; a missing or null entry is an answer without a fault. */
  readonly faults?: readonly (Fault | null | undefined)[];
  /** Default `straight_on`: words that are said again are split into other tokens, and reported as many. */
  readonly continuation?: Continuation;
  /** The text with which the model answers a request for the rest, in place of `continuation`. */
  readonly says?: Readonly<Partial<Record<'prefill' | 'nudge', (asked: Asked) => string>>>;
  /** It continues answers that have lost their connection, and faults are those of the connection. */
  readonly keeps?: KeepsAnswers;
  readonly prefill?: PrefillDialect;
  /**
   * A prefill is continued to the letter, or echoed, whatever the model makes of a nudge; default what the dialect named by
   * `prefill` does, if it is known for that.
   */
  readonly prefilled?: 'exact' | 'echo';
  /** A prefill without text is gone on with from its reasoning; default as DeepSeek does. */
  readonly thinksOn?: boolean;
  /** Says its reasoning again at the start of every continuation. */
  readonly rethinks?: boolean;
  /** Pause before each write; default 0, as fast as the client reads. */
  readonly delay_ms?: number;
  /** What is one write: default each event when paced, else everything there is. */
  readonly write?: 'event' | 'whole' | 'bytes';
}
