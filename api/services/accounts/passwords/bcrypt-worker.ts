import { parentPort } from 'node:worker_threads';
import { compareSync } from 'bcryptjs';
import { z } from 'zod';

const request = z.object({ id: z.number(), password: z.string(), hash: z.string() });

parentPort?.on('message', (message: unknown) => {
  const { id, password, hash } = request.parse(message);
  parentPort?.postMessage({ id, isMatch: compared(password, hash) });
});

/**
 * Returns false for a hash that cannot be computed. An error would end the thread, and with it the
 * comparisons that wait.
 */
function compared(password: string, hash: string): boolean {
  try {
    return compareSync(password, hash);
  } catch {
    return false;
  }
}
