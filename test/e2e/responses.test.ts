import { describe, vi } from 'vitest';
import { aiSdkResponses } from './clients/ai-sdk-responses.ts';
import { langchainResponses } from './clients/langchain-responses.ts';
import { openaiResponses, openaiResponsesHelper } from './clients/openai-responses.ts';
import { describeRecovery } from './recovery-matrix.ts';
import { RESPONSE_SITUATIONS } from './response-situations.ts';

vi.setConfig({ maxConcurrency: 16 });

describe('openai, responses.create()', () => describeRecovery(openaiResponses, RESPONSE_SITUATIONS));
describe('openai, responses.stream()', () => describeRecovery(openaiResponsesHelper, RESPONSE_SITUATIONS));
describe('ai with @ai-sdk/openai, responses', () => describeRecovery(aiSdkResponses, RESPONSE_SITUATIONS));
describe('@langchain/openai, responses', () => describeRecovery(langchainResponses, RESPONSE_SITUATIONS));
