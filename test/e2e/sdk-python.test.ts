import { afterAll, beforeAll, describe, expect, vi } from 'vitest';
import { OpenaiPython } from './clients/openai-python.ts';
import { pythonEnvironment } from './python/environment.ts';
import { describeRecovery } from './recovery-matrix.ts';

vi.setConfig({ maxConcurrency: 16, testTimeout: 20_000 });

const environment = await pythonEnvironment();
const interpreter = 'interpreter' in environment ? environment.interpreter : undefined;
const skipped = 'missing' in environment ? ` (skipped: ${environment.missing})` : '';

describe.skipIf(!interpreter)(`openai for Python${skipped}`, () => {
  let python: OpenaiPython;
  beforeAll(() => {
    python = new OpenaiPython(interpreter ?? '');
  });
  afterAll(async () => {
    expect(await python.close()).toBe('');
  });

  describe('chunk by chunk', () => describeRecovery((url) => python.client('chunks', url)));
  describe('.stream(), asynchronous', () => describeRecovery((url) => python.client('helper', url)));
});
