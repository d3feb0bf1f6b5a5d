export const DIALECT_NAMES = ['openai', 'generic', 'vllm', 'deepseek', 'mistral'] as const;
export type DialectName = (typeof DIALECT_NAMES)[number];
