import { describe, vi } from 'vitest';
import { anthropicEvents, anthropicHelper } from './clients/anthropic.ts';
import { MESSAGE_SITUATIONS } from './message-situations.ts';
import { describeRecovery } from './recovery-matrix.ts';

vi.setConfig({ maxConcurrency: 16 });

describe('anthropic, event by event', () => describeRecovery(anthropicEvents, MESSAGE_SITUATIONS));
describe('anthropic, .stream()', () => describeRecovery(anthropicHelper, MESSAGE_SITUATIONS));
