import { describe, vi } from 'vitest';
import { needs } from '../needs.ts';
import { AnthropicPython } from './clients/anthropic-python.ts';
import { MESSAGE_SITUATIONS } from './message-situations.ts';
import { pythonEnvironment } from './python/environment.ts';
import { describeRecovery } from './recovery-matrix.ts';

vi.setConfig({ maxConcurrency: 16 });

const environment = await pythonEnvironment();

if ('missing' in environment) {
  describe('anthropic for Python', needs(environment), () =>
    describeRecovery(neverConnect, MESSAGE_SITUATIONS),
  );
} else {
  const { interpreter } = environment;
  describe('anthropic for Python, event by event', () =>
    describeRecovery((url) => new AnthropicPython(interpreter, 'events', url), MESSAGE_SITUATIONS));
  describe('anthropic for Python, asynchronous, .stream()', () =>
    describeRecovery((url) => new AnthropicPython(interpreter, 'helper', url), MESSAGE_SITUATIONS));
}

function neverConnect(): never {
  throw new Error('a test that is skipped has no client');
}
