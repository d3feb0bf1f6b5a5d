import { randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StoreConfigurationError } from './store.ts';

const FILE_NAME = 'secret';
const SECRET_BYTES = 32;
const SECRET_CHARACTERS_MIN = 32;

/**
 * The secret in `<dir>/secret`, created with mode 0600 if missing. Processes that start at the same time in the same
 * directory get the same one. Rejects with a {@link StoreConfigurationError}.
 */
export async function loadOrCreateSecret(dir: string): Promise<string> {
  const path = join(dir, FILE_NAME);
  const secret = await readOrCreate(dir, path).catch((error: unknown) => {
    const message = error instanceof Error ? error.message : String(error);
    throw new StoreConfigurationError(
      `secret: ${path} cannot be used (${message}); make it readable and writable for this user, or configure \`secret\``,
      { cause: error },
    );
  });
  if (secret.length >= SECRET_CHARACTERS_MIN) return secret;
  throw new StoreConfigurationError(
    `secret: ${path} is shorter than ${SECRET_CHARACTERS_MIN} characters; remove it to have a new one made`,
  );
}

const readOrCreate = async (dir: string, path: string): Promise<string> =>
  (await readSecret(path)) ?? (await createSecret(dir, path));

async function readSecret(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/**
 * Written under a temporary name and then linked, so that the file is never seen half written and only one secret is
 * kept.
 */
async function createSecret(dir: string, path: string): Promise<string> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const secret = randomBytes(SECRET_BYTES).toString('base64url');
  const temporary = `${path}.${randomBytes(8).toString('hex')}`;
  await writeFile(temporary, `${secret}\n`, { mode: 0o600, flag: 'wx' });
  try {
    await link(temporary, path);
    return secret;
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error;
    return (await readFile(path, 'utf8')).trim();
  } finally {
    await rm(temporary, { force: true });
  }
}

const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;
