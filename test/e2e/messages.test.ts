import { describe, vi } from 'vitest';
import { aiSdkAnthropic } from './clients/ai-sdk-anthropic.ts';
import { anthropicEvents, anthropicHelper } from './clients/anthropic.ts';
import { langchainAnthropic } from './clients/langchain-anthropic.ts';
import { MESSAGE_SITUATIONS } from './message-situations.ts';
import { describeRecovery } from './recovery-matrix.ts';

vi.setConfig({ maxConcurrency: 16 });

describe('anthropic, event by event', () => describeRecovery(anthropicEvents, MESSAGE_SITUATIONS));
describe('anthropic, .stream()', () => describeRecovery(anthropicHelper, MESSAGE_SITUATIONS));
describe('ai with @ai-sdk/anthropic', () => describeRecovery(aiSdkAnthropic, MESSAGE_SITUATIONS));
describe('@langchain/anthropic', () => describeRecovery(langchainAnthropic, MESSAGE_SITUATIONS));
