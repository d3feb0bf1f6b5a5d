import type { DialectName } from '../../config/dialect-names.ts';
import type { ChatMessage } from '../wires/chat-request.ts';

/** The partial answer that a continuation hangs on. */
export interface PartialAnswer {
  /** The delivered text, as it may be sent. */
  readonly text: string;
  readonly reasoning: string;
}

/** How one provider deviates on the chat completions wire. */
export interface Dialect {
  readonly name: DialectName;
  /** Whether a trailing assistant message is continued; `undefined`: try it once and remember. */
  readonly prefill: boolean | undefined;
  /** Prefill may be used in a request that has tools. */
  readonly prefillWithTools: boolean;
  /** The answer to a prefill begins with the prefill. */
  readonly echoes: boolean;
  /** A prefill carries the reasoning too, and the model goes on with it. */
  readonly continuesReasoning: boolean;
  /** The trailing assistant message of a prefill. */
  assistantMessage(partial: PartialAnswer): ChatMessage;
  /** Parameters that make a request a prefill. */
  readonly prefillParameters: Readonly<Record<string, unknown>>;
  /** Where prefill requests go, when not to the same address. */
  prefillUrl?(base_url: string): string;
}

/** What every dialect is unless it says otherwise. */
export const PLAIN = {
  prefill: undefined,
  prefillWithTools: false,
  echoes: false,
  continuesReasoning: false,
  assistantMessage: ({ text }: PartialAnswer) => ({ role: 'assistant', content: text }),
  prefillParameters: {},
} as const satisfies Omit<Dialect, 'name'>;
