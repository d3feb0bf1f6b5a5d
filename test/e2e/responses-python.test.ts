import { describe, vi } from 'vitest';
import { needs } from '../needs.ts';
import { OpenaiPython } from './clients/openai-python.ts';
import { pythonEnvironment } from './python/environment.ts';
import { describeRecovery } from './recovery-matrix.ts';
import { RESPONSE_SITUATIONS } from './response-situations.ts';

vi.setConfig({ maxConcurrency: 16 });

const environment = await pythonEnvironment();

if ('missing' in environment) {
  describe('openai for Python, responses', needs(environment), () =>
    describeRecovery(neverConnect, RESPONSE_SITUATIONS),
  );
} else {
  const { interpreter } = environment;
  describe('openai for Python, responses.create()', () =>
    describeRecovery((url) => new OpenaiPython(interpreter, 'events', url), RESPONSE_SITUATIONS));
  describe('openai for Python, asynchronous, responses.stream()', () =>
    describeRecovery((url) => new OpenaiPython(interpreter, 'response_helper', url), RESPONSE_SITUATIONS));
}

function neverConnect(): never {
  throw new Error('a test that is skipped has no client');
}
