import { describe, expect, test } from 'vitest';
import { threadOf } from '../../../src/proxy/api/run-options.ts';

const SESSION = { 'x-claude-code-session-id': 'session' };
const ALL = {
  prompt_cache_key: 'cache key',
  conversation: 'conversation',
  metadata: { session_id: 'metadata session' },
  user: 'user',
};

describe('a request that names no thread belongs to that of', () => {
  test.each<[string, Record<string, string>, Record<string, unknown>, string | undefined]>([
    ['the session of Claude Code', SESSION, ALL, 'session'],
    [
      'a sub-agent in it, which has a conversation of its own',
      { ...SESSION, 'x-claude-code-agent-id': 'agent' },
      ALL,
      'session/agent',
    ],
    ['the thread of Codex', { 'session-id': 'session', 'thread-id': 'thread' }, ALL, 'thread'],
    ['the session of Codex', { 'session-id': 'session' }, ALL, 'session'],
    ['the session of opencode', { 'x-session-id': 'ses_1', 'x-session-affinity': 'ses_1' }, ALL, 'ses_1'],
    ['its cache key', {}, ALL, 'cache key'],
    ['its conversation', {}, { ...ALL, prompt_cache_key: '' }, 'conversation'],
    ['its conversation, named as an object', {}, { conversation: { id: 'conv_1' }, user: 'user' }, 'conv_1'],
    ['the session in its metadata', {}, { metadata: ALL.metadata, user: 'user' }, 'metadata session'],
    ['its user', {}, { metadata: null, conversation: 7, user: 'user' }, 'user'],
    ['no session, where nothing tells of one', { 'x-claude-code-agent-id': 'agent' }, { user: 7 }, undefined],
    ['no session whose name is too long', {}, { user: 'u'.repeat(257) }, undefined],
  ])('%s', (_, headers, fields, name) => {
    expect(threadOf(headers, fields, true)).toEqual(
      name === undefined ? undefined : { name, isDerived: true },
    );
    expect(threadOf(headers, fields, false)).toBeUndefined();
  });
});

test('a thread that is named comes before all others', () => {
  const named = { name: 'thread', isDerived: false };
  expect(threadOf({ ...SESSION, 'holdfast-thread': 'thread' }, ALL, true)).toEqual(named);
  expect(threadOf({ ...SESSION, 'holdfast-thread': 'thread' }, ALL, false)).toEqual(named);
  expect(() => threadOf({ 'holdfast-thread': 't'.repeat(257) }, ALL, true)).toThrow('Holdfast-Thread');
});
