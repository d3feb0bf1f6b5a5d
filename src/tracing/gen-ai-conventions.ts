import type { WireName } from '../checkpoint/journal.ts';
import type { UpstreamConfiguration } from '../config/configuration.ts';
import type { DialectName } from '../config/dialect-names.ts';
import { dialectAt } from '../proxy/wires/dialects/registry.ts';

/** The values of `gen_ai.operation.name`. */
export const OPERATIONS = ['chat', 'text_completion'] as const;

const OPERATION_OF: Readonly<Record<WireName, (typeof OPERATIONS)[number]>> = {
  chat_completions: 'chat',
  completions: 'text_completion',
  messages: 'chat',
  responses: 'chat',
};

export const operationOf = (wire: WireName): string => OPERATION_OF[wire];

/** Where the conventions have a name for a provider that is not that of its dialect. */
const CONVENTIONAL: Readonly<Partial<Record<DialectName, string>>> = {
  azure: 'azure.ai.openai',
  bedrock: 'aws.bedrock',
  gemini: 'gcp.gemini',
  kimi: 'moonshot_ai',
  mistral: 'mistral_ai',
  xai: 'x_ai',
};

/** The value of `gen_ai.provider.name`. Of an upstream of which nothing is known, it is the name that it was given. */
export function providerName(upstream: string, { dialect, base_url }: UpstreamConfiguration): string {
  const name = dialect ?? dialectAt(base_url)?.name;
  if (name === undefined || name === 'generic') return upstream;
  return CONVENTIONAL[name] ?? name;
}
