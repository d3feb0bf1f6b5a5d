import { expect, test } from 'vitest';
import { MemoryNotes, type MemoryNoteTable } from '../../../src/checkpoint/memory/notes.ts';
import { VirtualTime } from '../../simulation/virtual-time.ts';
import { OWNER } from '../fixtures.ts';

test('beyond a hundred thousand notes the oldest goes', async () => {
  const table: MemoryNoteTable = new Map();
  const notes = new MemoryNotes(new VirtualTime(), table);
  for (let i = 0; i <= 100_000; i++) await notes.put(OWNER, { kind: 'reader', name: String(i) }, 'x', 1000);
  expect(table.size).toBe(100_000);
  expect(await notes.get(OWNER, { kind: 'reader', name: '0' })).toBeUndefined();
  expect(await notes.get(OWNER, { kind: 'reader', name: '1' })).toBe('x');
});
