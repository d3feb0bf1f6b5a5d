import { describe, expect, it } from 'vitest';
import { completeConfiguration } from '../../src/config/load.ts';
import { resumeCommand, tryCommand } from '../../src/config/sample-requests.ts';

const API = 'http://127.0.0.1:8080';
const KEYED = { base_url: 'https://api.openai.com/v1', api_key: 'sk-secret' };

describe('the request to try', () => {
  const commandOf = (tree: Record<string, unknown>) =>
    tryCommand(API, completeConfiguration({ upstreams: { openai: KEYED }, ...tree }));
  const to = (upstream: string, model: string) => ({ model, targets: [{ upstream }] });

  it('asks for the first model that a route names', () => {
    const routes = [to('openai', 'claude-*'), to('openai', "gpt-4o's")];
    expect(commandOf({ routes })).toBe(
      `curl -N 'http://127.0.0.1:8080/v1/chat/completions' -H 'content-type: application/json' -d '{"model":"gpt-4o'\\''s","stream":true,"messages":[{"role":"user","content":"Hello"}]}'`,
    );
    expect(commandOf({})).toContain('{"model":"MODEL",');
  });

  it.each([
    ['an upstream has no key of the operator', { upstreams: { openai: { base_url: KEYED.base_url } } }],
    ['clients have tokens', { clients: [{ name: 'one', token: 'a-token-that-is-long-enough' }] }],
  ])('has the key of a client where %s', (_why, tree) => {
    expect(commandOf(tree)).toContain(' -H "authorization: Bearer $HOLDFAST_API_KEY" ');
  });
});

describe('the request to come back to a run', () => {
  it('names the place of the run, and a key where the API needs one', () => {
    const configuration = completeConfiguration({ upstreams: { openai: KEYED } });
    const command = "curl -N 'http://127.0.0.1:8080/holdfast/v1/runs/{run_id}/stream'";
    expect(resumeCommand(API, configuration)).toBe(command);
    const open = completeConfiguration({ upstreams: { openai: { base_url: KEYED.base_url } } });
    expect(resumeCommand(API, open)).toBe(`${command} -H "authorization: Bearer $HOLDFAST_API_KEY"`);
  });
});
