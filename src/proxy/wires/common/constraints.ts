import { isObject } from '../../../lib/json.ts';

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

export interface Constraints {
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
