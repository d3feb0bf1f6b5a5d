import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { UIMessage } from 'ai';

/** In your application, this is a row of a database. */
export interface Chat {
  readonly id: string;
  readonly messages: readonly UIMessage[];
  /** The answer that is being given: `id` of its message, `run` once Holdfast has begun one. */
  readonly pending?: { readonly id: string; readonly run?: string };
}

const DIRECTORY = process.env.CHATS ?? 'chats';
const ID = /^[\w-]{1,64}$/;

/** Throws if this cannot be the id of a chat. */
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
