import type { DialectName } from '../../../config/dialect-names.ts';
import { isObject } from '../../../lib/json.ts';
import type { PrefillManner } from '../../../plans/seam/mode.ts';
import type { PositionUnit } from '../../upstream/stream-position.ts';
import type { ChatMessage, ChatRequest } from './request.ts';

/** The partial answer that a continuation hangs on. */
export interface PartialAnswer {
  /** The delivered text, as it may be sent. */
  readonly text: string;
  readonly reasoning: string;
}

/** Whether a trailing assistant message is continued; `undefined`: try it once and remember. */
export type Prefill = boolean | undefined;

/** What is the same for all models of a provider, or depends on the one that is asked. */
type ByModel<Value extends boolean | undefined> = Value | ((model: string) => Value);

/** A request that was interrupted and is to be asked for again, with the answer so far at its end. */
export interface Interrupted {
  readonly request: ChatRequest;
  /** The first event of the interrupted answer, parsed; empty if there was none. */
  readonly first: Readonly<Record<string, unknown>>;
}

/** How a provider keeps an answer after a lost connection, on the wires that speak in chunks. */
export interface Keeping {
  /** What a place in the answer is counted in. */
  readonly counts: PositionUnit;
  /**
   * The header with the name of the answer, in lower case: of the request, which has it kept under a name of ours, or of
   * the response, where the provider names what it keeps.
   */
  readonly id: { readonly in: 'request' | 'response'; readonly header: string };
  /** Where the rest is to be had, from that place on. `id` is fit for a URL. */
  resumeUrl(base_url: string, id: string, from: number): string;
  /** What to `DELETE` to stop the answer: a provider that keeps it does not stop for a lost connection. */
  stopUrl?(base_url: string, id: string): string;
}

/** For the documentation. */
export interface About {
  /** The providers and servers that speak the dialect. */
  readonly speakers: string;
  /** Names of models that its rules tell apart. */
  readonly models?: readonly string[];
  /** What could not be verified, and what is done about it. */
  readonly unverified?: string;
}

/** How one provider deviates on the chat completions wire. */
export interface Dialect {
  readonly name: DialectName;
  readonly about: About;
  /** Hosts of the provider, with a port where only that identifies it; `*` stands for any characters. */
  readonly addresses: readonly string[];
  /** What gives a server away whose address says nothing. */
  readonly sign?: Fingerprint;
  readonly prefill: ByModel<Prefill>;
  /** Prefill may be used in a request that has tools. */
  readonly prefillWithTools: ByModel<boolean>;
  /** The answer to a prefill begins with the prefill; `undefined`: it may. */
  readonly echoes: ByModel<boolean | undefined>;
  /** A prefix that ends in white space is continued behind that. Elsewhere it is refused, or the white space dropped. */
  readonly keepsSpace: boolean;
  /** A prefill carries the reasoning too, and the model continues it. */
  readonly continuesReasoning: boolean;
  /** The trailing assistant message of a prefill. */
  assistantMessage(partial: PartialAnswer): ChatMessage;
  /** Parameters that make a request a prefill. */
  prefillParameters(interrupted: Interrupted): Readonly<Record<string, unknown>>;
  /** Parameters that keep the model from thinking before it continues an answer that has begun. */
  nudgeParameters?(interrupted: Interrupted): Readonly<Record<string, unknown>>;
  /** Where prefill requests go, when not to the same address. */
  prefillUrl?(base_url: string): string;
  readonly keeps?: Keeping;
  /** The parameter that limits an answer of its newest models. */
  readonly limit: 'max_tokens' | 'max_completion_tokens';
  /** Usage comes unasked, and a request that asks for it is refused. */
  readonly reportsUnasked?: true;
  /** Messages with fields that other providers add to theirs are refused. */
  readonly refusesAddedFields?: true;
  /** A tool result must be followed by an answer, not by another message. */
  readonly answersToolResults?: true;
  /** The id of a tool call that another provider may have made, as this one takes it. The same whenever it is asked for. */
  callId?(id: string): string;
}

/** What every dialect is unless it says otherwise. */
export const PLAIN = {
  addresses: [],
  prefill: undefined,
  prefillWithTools: false,
  echoes: undefined,
  keepsSpace: false,
  continuesReasoning: false,
  assistantMessage: ({ text }: PartialAnswer) => ({ role: 'assistant', content: text }),
  prefillParameters: () => ({}),
  limit: 'max_tokens',
} as const satisfies Omit<Dialect, 'name' | 'about'>;

/** The client's options of the chat template, with thinking switched off: text has begun, and a thought would cut it. */
export const withoutThinking = ({ request }: Interrupted) => ({
  chat_template_kwargs: {
    ...(isObject(request.chat_template_kwargs) && request.chat_template_kwargs),
    enable_thinking: false,
  },
});

/** What is known of a model's prefill by its dialect; `undefined` where that says nothing. */
export function mannerOf({ prefill, echoes }: Dialect, model: string): PrefillManner | undefined {
  const continues = forModel(prefill, model);
  const repeats = forModel(echoes, model);
  if (continues === false) return 'new_turn';
  if (continues === undefined || repeats === undefined) return undefined;
  return repeats ? 'echo' : 'exact';
}

export const forModel = <Value extends boolean | undefined>(value: ByModel<Value>, model: string): Value =>
  typeof value === 'function' ? value(model) : value;

/** A request of our own for a short answer to one question. `dialect`: of the provider, if it is known. */
export const questionRequest = (
  model: string,
  question: string,
  tokens_max: number,
  { limit, reportsUnasked }: Pick<Dialect, 'limit' | 'reportsUnasked'> = PLAIN,
): ChatRequest => ({
  model,
  stream: true,
  ...(reportsUnasked ? {} : { stream_options: { include_usage: true } }),
  [limit]: tokens_max,
  messages: [{ role: 'user', content: question }],
});

/** What a provider's stream shows of the server it comes from. */
export interface Samples {
  /** Parsed events: the first ones, and the one that finishes. */
  readonly events: readonly Readonly<Record<string, unknown>>[];
  /** Of the response, under lower-case names. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export const NO_TRACES: Samples = { events: [], headers: {} };

/** Something that only one server sends. */
export interface Fingerprint {
  /** In words, for the documentation. */
  readonly says: string;
  isIn(traces: Samples): boolean;
}

/** A field at the top of an event, of which `isIts` says that it is the server's. */
export const eventFingerprint = (
  says: string,
  isIts: (event: Readonly<Record<string, unknown>>) => boolean,
): Fingerprint => ({ says, isIn: ({ events }) => events.some(isIts) });

/** A `system_fingerprint` of this form. */
export const systemFingerprint = (says: string, form: RegExp): Fingerprint =>
  eventFingerprint(
    `\`system_fingerprint\` ${says}`,
    ({ system_fingerprint }) => typeof system_fingerprint === 'string' && form.test(system_fingerprint),
  );

/** A field of `choices[0]`, whatever its value: servers that know it send it empty, too. */
export const hasChoiceField = ({ choices }: Readonly<Record<string, unknown>>, field: string): boolean => {
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isObject(choice) && field in choice;
};
