import { describe, expect, test } from 'vitest';
import { digestOfNote, encodeNote, NoteReader } from '../../src/checkpoint/note-codec.ts';
import { OWNER } from './fixtures.ts';

const KEY = { kind: 'idempotency', name: 'key' } as const;
const DIGEST = digestOfNote(OWNER, KEY);
const note = (value: string) => encodeNote(DIGEST, value, undefined);

/** Claims the note `ours` while the store holds these values, one after the other, and then none. */
function claiming(...stored: string[]) {
  const complaints: string[] = [];
  const reader = new NoteReader(undefined, ({ message }) => complaints.push(message));
  const replaced: (string | undefined)[] = [];
  const own = { digest: DIGEST, kind: KEY.kind, value: 'ours', text: note('ours') };
  const claim = reader.claimed(own, async (in_place_of?: string) => {
    replaced.push(in_place_of);
    return stored.shift() ?? own.text;
  });
  return { claim, replaced, complaints };
}

describe('a claim', () => {
  test('keeps its own note where there is none', async () => {
    const { claim, replaced } = claiming();
    expect(await claim).toBe('ours');
    expect(replaced).toEqual([undefined]);
  });

  test('gives way to the note that is there', async () => {
    const { claim, replaced } = claiming(note('theirs'));
    expect(await claim).toBe('theirs');
    expect(replaced).toEqual([undefined]);
  });

  test('replaces a note that cannot be read, whatever is there by then, and reports it once', async () => {
    const { claim, replaced, complaints } = claiming('damaged', 'damaged again', note('theirs'));
    expect(await claim).toBe('theirs');
    expect(replaced).toEqual([undefined, 'damaged', 'damaged again']);
    expect(complaints).toHaveLength(1);
  });

  test('is given up where no note can ever be read', async () => {
    const { claim, replaced } = claiming(...Array<string>(100).fill('damaged'));
    await expect(claim).rejects.toThrow('too many at once');
    expect(replaced).toHaveLength(17);
  });
});
