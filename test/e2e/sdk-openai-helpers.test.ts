import { describe, vi } from 'vitest';
import { openaiCompletions, openaiHelper } from './clients/openai.ts';
import { describeRecovery } from './recovery-matrix.ts';
import { SITUATIONS } from './situations.ts';

vi.setConfig({ maxConcurrency: 16 });

describe('openai, .stream()', () => describeRecovery(openaiHelper));
describe('openai, completions', () =>
  describeRecovery(
    openaiCompletions,
    SITUATIONS.filter(({ name }) => name === 'text'),
  ));
