import { describe, expect, it } from 'vitest';
import { linkFault } from '../../src/config/status-links.ts';

describe('a link to the trace or the log of a run', () => {
  it.each([
    'https://traces.example.com/trace/{trace_id}',
    'http://127.0.0.1:3000/explore?query={run_id}',
    'https://logs.example.com/#/search?run={run_id}&trace={trace_id}',
  ])('may be %s', (template) => {
    expect(linkFault(template)).toBeUndefined();
  });

  it.each([
    ['https://traces.example.com/', 'must have {run_id} or {trace_id}'],
    ['https://traces.example.com/{span_id}', 'has {span_id}; it may have {run_id} and {trace_id}.'],
    ['/trace/{trace_id}', 'must be an http: or https: URL'],
    ['javascript:alert("{run_id}")', 'must be an http: or https: URL'],
    ['https://{trace_id}.example.com/', 'must have its placeholders after the host.'],
    ['https://user:secret@example.com/{run_id}', 'must not hold credentials'],
  ])('is refused as %s, with the reason', (template, fault) => {
    expect(linkFault(template)).toContain(fault);
  });
});
