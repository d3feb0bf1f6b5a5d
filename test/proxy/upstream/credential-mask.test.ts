import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CREDENTIAL_HEADERS, SECRET_HEADERS } from '../../../src/config/configuration.ts';
import { CredentialMask } from '../../../src/proxy/upstream/credential-mask.ts';

const KEY = 'sk-0123456789abcdef';

const masked = (headers: Record<string, string>, text: string) => new CredentialMask(headers).text(text);

describe('a credential that was sent', () => {
  it.each(SECRET_HEADERS)('is hidden where it is repeated, if it was sent as %s', (name) => {
    for (const value of [KEY, ...(name.endsWith('authorization') ? [`Bearer ${KEY}`, `bearer  ${KEY}`] : [])])
      expect(masked({ [name]: value }, `no: ${KEY}, ${KEY}.`)).toBe(
        `no: ${'*'.repeat(KEY.length)}, ${'*'.repeat(KEY.length)}.`,
      );
  });

  it('is hidden as JSON writes it, too', () => {
    const odd = 'sk-"0123456"/\\89';
    const headers = { 'x-api-key': odd };
    for (const written of [odd, JSON.stringify(odd).slice(1, -1), odd.replaceAll('/', '\\/')])
      expect(masked(headers, `<${written}>`)).toMatch(/^<\*+>$/);
  });

  it('is hidden as far as it is there, at the end of a text that was cut', () => {
    const headers = { authorization: `Bearer ${KEY}` };
    expect(masked(headers, `no: ${KEY.slice(0, -1)}`)).toBe(`no: ${'*'.repeat(KEY.length - 1)}`);
    expect(masked(headers, 'no: sk-0123')).toBe('no: sk-0123');
  });
});

describe('all else is left as it is', () => {
  it('where none was sent, or one that is too short for a secret', () => {
    expect(masked({ accept: KEY }, KEY)).toBe(KEY);
    for (const word of ['', 'none', 'Bearer', 'Bearer none', 'sk-none'])
      expect(masked({ authorization: word }, 'Bearer none, sk-none')).toBe('Bearer none, sk-none');
  });

  it('names of an account, and another key', () => {
    const account = CREDENTIAL_HEADERS.filter((name) => !SECRET_HEADERS.includes(name));
    expect(account).toEqual(['openai-organization', 'openai-project']);
    for (const name of account)
      expect(masked({ [name]: 'org-0123456789' }, 'org-0123456789')).toBe('org-0123456789');
    expect(masked({ 'x-api-key': KEY }, `sk-1123456789abcdef ${KEY.slice(1)}`)).toBe(
      `sk-1123456789abcdef ${KEY.slice(1)}`,
    );
  });
});

it('in pieces of any length the same is hidden as in one, and nothing changes its length', () => {
  const piece = fc.oneof(
    fc.constant(KEY),
    fc.constant(KEY.slice(0, 9)),
    fc.constant(KEY.slice(9)),
    fc.string(),
  );
  fc.assert(
    fc.property(fc.array(piece), fc.array(fc.nat(40)), (parts, cuts) => {
      const mask = new CredentialMask({ 'x-api-key': KEY });
      const whole = Buffer.from(parts.join(''));
      const stream = mask.stream();
      const out: Buffer[] = [];
      let from = 0;
      for (const length of cuts) {
        out.push(stream.push(whole.subarray(from, from + length)));
        from += length;
      }
      out.push(stream.push(whole.subarray(from)), stream.end());
      const shown = Buffer.concat(out).toString();
      expect(shown).toBe(whole.toString().replaceAll(KEY, '*'.repeat(KEY.length)));
    }),
  );
});
