import { describe, vi } from 'vitest';
import { needs } from '../needs.ts';
import { OpenaiPython } from './clients/openai-python.ts';
import { pythonEnvironment } from './python/environment.ts';
import { describeRecovery } from './recovery-matrix.ts';

vi.setConfig({ maxConcurrency: 16 });

const environment = await pythonEnvironment();

if ('missing' in environment) {
  describe('openai for Python', needs(environment), () => describeRecovery(neverConnect));
} else {
  const { interpreter } = environment;
  describe('openai for Python, chunk by chunk', () =>
    describeRecovery((url) => new OpenaiPython(interpreter, 'chunks', url)));
  describe('openai for Python, asynchronous, .stream()', () =>
    describeRecovery((url) => new OpenaiPython(interpreter, 'helper', url)));
}

function neverConnect(): never {
  throw new Error('a test that is skipped has no client');
}
