import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { UIMessage } from 'ai';

/** In a real application, a database row. */
export interface Chat {
  readonly id: string;
  readonly messages: readonly UIMessage[];
  /** The answer in progress: the `id` of its message, and its `run` once Holdfast has started one. */
  readonly pending?: { readonly id: string; readonly run?: string };
}

const DIRECTORY = process.env.CHATS ?? 'chats';
const ID = /^[\w-]{1,64}$/;

/** Throws if `id` isn't a valid chat id. */
export function loadChat(id: string): Chat {
  try {
    return JSON.parse(readFileSync(fileOf(id), 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { id, messages: [] };
    throw error;
  }
}

export function saveChat(chat: Chat): void {
  mkdirSync(DIRECTORY, { recursive: true });
  const file = fileOf(chat.id);
  writeFileSync(`${file}.new`, JSON.stringify(chat));
  renameSync(`${file}.new`, file);
}

function fileOf(id: string): string {
  if (!ID.test(id)) throw new Error(`${JSON.stringify(id)} is not the id of a chat`);
  return join(DIRECTORY, `${id}.json`);
}
