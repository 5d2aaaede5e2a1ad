import { parentPort } from 'node:worker_threads';
import { compareSync } from 'bcryptjs';
import { z } from 'zod';

const request = z.object({ id: z.number(), password: z.string(), hash: z.string() });

parentPort?.on('message', (message: unknown) => {
  const { id, password, hash } = request.parse(message);
  parentPort?.postMessage({ id, isMatch: compared(password, hash) });
});

/**
 * Returns whether a password matches. Returns false if bcrypt cannot compute the hash: an error
 * would end the thread and all waiting comparisons.
 */
function compared(password: string, hash: string): boolean {
  try {
    return compareSync(password, hash);
  } catch {
    return false;
  }
}
