import { isObject } from '../../../lib/json.ts';
import type { PromptSize } from '../../../plans/tokens.ts';
import type { ToolSchemas } from '../../../plans/tool-proof.ts';

/** What a request says about how its answer may be recovered, whatever the wire. */
export interface RequestFacts {
  readonly schemas: ToolSchemas;
  readonly hasTools: boolean;
  readonly choices: number;
  /** False for output that cannot be joined across attempts: `n > 1`, `logprobs`, audio. */
  readonly spliceable: boolean;
  /** Structured output and forced tools: asked to continue, a model starts such an answer anew. */
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

/** Where servers take a schema or a grammar beside `response_format`: vLLM, SGLang, llama.cpp. */
const SCHEMAS = ['guided_json', 'json_schema'] as const;
const GRAMMARS = [
  'guided_regex',
  'guided_choice',
  'guided_grammar',
  'structured_outputs',
  'grammar',
  'regex',
  'ebnf',
] as const;

interface Constraints {
  readonly expectsJson: boolean;
  /** The answer must have a certain form: given half of what that allows, a model begins anew. */
  readonly isGuided: boolean;
}

/** What a request allows its answer to be. */
export function constraintsOf(request: Readonly<Record<string, unknown>>): Constraints {
  const { response_format } = request;
  const type = isObject(response_format) ? response_format.type : undefined;
  const has = (name: string) => (request[name] ?? undefined) !== undefined;
  const expectsJson = type === 'json_object' || type === 'json_schema' || SCHEMAS.some(has);
  const hasFormat = type !== undefined && type !== 'text';
  return { expectsJson, isGuided: expectsJson || hasFormat || GRAMMARS.some(has) };
}
