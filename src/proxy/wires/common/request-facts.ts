import type { PromptSize } from '../../../plans/tokens.ts';
import type { ToolSchemas } from '../../../plans/tool-proof.ts';

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
  /** Measured when it is asked for, which hardly any run does. */
  promptSize(): PromptSize;
}
