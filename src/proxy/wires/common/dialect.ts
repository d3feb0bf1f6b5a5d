import type { DialectName } from '../../../config/dialect-names.ts';
import { isObject } from '../../../lib/json.ts';
import type { PrefillManner } from '../../../plans/seam/mode.ts';
import type { PositionUnit } from '../../upstream/stream-position.ts';
import type { ChatMessage, ChatRequest } from './request.ts';

/** The partial answer to continue. */
export interface PartialAnswer {
  /** The delivered text in a form that may be sent. */
  readonly text: string;
  readonly reasoning: string;
}

/** Whether a trailing assistant message is continued; `undefined`: try once and remember. */
export type Prefill = boolean | undefined;

/** A value for all models of a provider, or a function of the model. */
type ByModel<Value extends boolean | undefined> = Value | ((model: string) => Value);

/** An interrupted request to be repeated with the answer so far. */
export interface Interrupted {
  readonly request: ChatRequest;
  /** The first event of the interrupted answer, parsed; empty if there was none. */
  readonly first: Readonly<Record<string, unknown>>;
}

/** How a provider stores an answer beyond a lost connection, on wires with chunks. */
export interface Keeping {
  /** The unit of a position in the answer. */
  readonly counts: PositionUnit;
  /**
   * The header that names the answer, in lower case. `request`: the provider stores it under our name; `response`: the
   * provider names what it stores.
   */
  readonly id: { readonly in: 'request' | 'response'; readonly header: string };
  /** The URL of the rest from a position on. `id` is safe for URLs. */
  resumeUrl(base_url: string, id: string, from: number): string;
  /** The URL to `DELETE` to stop the answer, because such a provider doesn't stop when the connection is lost. */
  stopUrl?(base_url: string, id: string): string;
}

/** For the documentation. */
export interface About {
  /** The providers and servers with this dialect. */
  readonly speakers: string;
  /** Model names that its rules distinguish. */
  readonly models?: readonly string[];
  /** What could not be verified, and how Holdfast handles that. */
  readonly unverified?: string;
}

/** A provider's deviations on the chat completions wire. */
export interface Dialect {
  readonly name: DialectName;
  readonly about: About;
  /** Hosts of the provider, with a port if only that identifies it; `*` matches any characters. */
  readonly addresses: readonly string[];
  /** Identifies a server whose address doesn't. */
  readonly sign?: Fingerprint;
  readonly prefill: ByModel<Prefill>;
  /** Prefill works in requests with tools. */
  readonly prefillWithTools: ByModel<boolean>;
  /** The answer to a prefill begins with the prefill; `undefined`: it may. */
  readonly echoes: ByModel<boolean | undefined>;
  /** Continues a prefix that ends in white space after it; others refuse it or drop the white space. */
  readonly keepsSpace: boolean;
  /** A prefill contains the reasoning too, and the model continues it. */
  readonly continuesReasoning: boolean;
  /** The trailing assistant message of a prefill. */
  assistantMessage(partial: PartialAnswer): ChatMessage;
  /** Parameters that make a request a prefill. */
  prefillParameters(interrupted: Interrupted): Readonly<Record<string, unknown>>;
  /** Parameters that keep the model from reasoning before it continues an answer. */
  nudgeParameters?(interrupted: Interrupted): Readonly<Record<string, unknown>>;
  /** The URL for prefill requests, if it differs. */
  prefillUrl?(base_url: string): string;
  readonly keeps?: Keeping;
  /** The output limit parameter of its newest models. */
  readonly limit: 'max_tokens' | 'max_completion_tokens';
  /** Reports usage unasked, and refuses requests that ask for it. */
  readonly reportsUnasked?: true;
  /** Refuses messages with fields that other providers add. */
  readonly refusesAddedFields?: true;
  /** A tool result must be followed by an answer, not by another message. */
  readonly answersToolResults?: true;
  /** Converts a tool call id from another provider. Deterministic. */
  callId?(id: string): string;
}

/** Defaults for all dialects. */
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

/** The client's chat template options with reasoning switched off: text has begun, and reasoning would interrupt it. */
export const withoutThinking = ({ request }: Interrupted) => ({
  chat_template_kwargs: {
    ...(isObject(request.chat_template_kwargs) && request.chat_template_kwargs),
    enable_thinking: false,
  },
});

/** How the dialect says that a model treats a prefix; `undefined` if unknown. */
export function mannerOf({ prefill, echoes }: Dialect, model: string): PrefillManner | undefined {
  const continues = forModel(prefill, model);
  const repeats = forModel(echoes, model);
  if (continues === false) return 'new_turn';
  if (continues === undefined || repeats === undefined) return undefined;
  return repeats ? 'echo' : 'exact';
}

export const forModel = <Value extends boolean | undefined>(value: ByModel<Value>, model: string): Value =>
  typeof value === 'function' ? value(model) : value;

/** A short request of our own with one question. `dialect`: the provider's, if known. */
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

/** Samples of a provider's stream that identify the server. */
export interface Samples {
  /** Parsed events: the first ones and the finishing one. */
  readonly events: readonly Readonly<Record<string, unknown>>[];
  /** Response headers with lower-case names. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export const NO_TRACES: Samples = { events: [], headers: {} };

/** A trait that only one server has. */
export interface Fingerprint {
  /** A description for the documentation. */
  readonly says: string;
  isIn(traces: Samples): boolean;
}

/** Matches on top-level fields of an event. */
export const eventFingerprint = (
  says: string,
  isIts: (event: Readonly<Record<string, unknown>>) => boolean,
): Fingerprint => ({ says, isIn: ({ events }) => events.some(isIts) });

/** Matches on `system_fingerprint`. */
export const systemFingerprint = (says: string, form: RegExp): Fingerprint =>
  eventFingerprint(
    `\`system_fingerprint\` ${says}`,
    ({ system_fingerprint }) => typeof system_fingerprint === 'string' && form.test(system_fingerprint),
  );

/** Whether `choices[0]` has the field, even an empty one: servers that know a field also send it empty. */
export const hasChoiceField = ({ choices }: Readonly<Record<string, unknown>>, field: string): boolean => {
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isObject(choice) && field in choice;
};
