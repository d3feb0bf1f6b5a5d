import { describe, vi } from 'vitest';
import { openaiChunks } from './clients/openai.ts';
import { describeRecovery } from './recovery-matrix.ts';

vi.setConfig({ maxConcurrency: 16 });

describe('openai, chunk by chunk', () => describeRecovery(openaiChunks));
