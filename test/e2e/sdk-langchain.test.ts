import { describe, vi } from 'vitest';
import { langchain } from './clients/langchain.ts';
import { describeRecovery } from './recovery-matrix.ts';

vi.setConfig({ maxConcurrency: 16 });

describe('@langchain/openai', () => describeRecovery(langchain));
