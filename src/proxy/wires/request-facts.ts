import type { ToolSchemas } from '../../plans/tool-proof.ts';

/** What a request says about how its answer may be recovered, whatever the wire. */
export interface RequestFacts {
  readonly schemas: ToolSchemas;
  readonly hasTools: boolean;
  readonly choices: number;
  /** False for output that cannot be joined across attempts: `n > 1`, `logprobs`, audio. */
  readonly spliceable: boolean;
  /** Structured output and forced tools: asked to go on, a model starts such an answer anew. */
  readonly onlyReplay: boolean;
  readonly expectsJson: boolean;
  readonly stops: readonly string[];
  readonly max_tokens: number;
  readonly usageAsked: boolean;
  /** The legacy `functions` interface: one call, without an id. */
  readonly legacyFunctions: boolean;
  /** Of each message. */
  readonly request_characters: readonly number[];
}

/** Of a message's content: text, or parts of it. */
export function charactersOf(content: unknown): number {
  if (typeof content === 'string') return content.length;
  return content === undefined || content === null ? 0 : JSON.stringify(content).length;
}
