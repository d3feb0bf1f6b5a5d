import { describe, vi } from 'vitest';
import { aiSdkCompatible, aiSdkOpenai } from './clients/ai-sdk.ts';
import { describeRecovery } from './recovery-matrix.ts';

vi.setConfig({ maxConcurrency: 16 });

describe('ai with @ai-sdk/openai', () => describeRecovery(aiSdkOpenai));
describe('ai with @ai-sdk/openai-compatible', () => describeRecovery(aiSdkCompatible));
