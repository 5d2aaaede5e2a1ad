import { readFileSync } from 'node:fs';
import { z } from 'zod';

/** Returns the version in `package.json`. The compiled package contains a copy of this file. */
export function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return z.object({ version: z.string() }).parse(JSON.parse(text)).version;
}
