import { parentPort } from 'node:worker_threads';
import { compareSync } from 'bcryptjs';
import { z } from 'zod';

const request = z.object({ id: z.number(), password: z.string(), hash: z.string() });

parentPort?.on('message', (message: unknown) => {
  const { id, password, hash } = request.parse(message);
  parentPort?.postMessage({ id, isMatch: compareSync(password, hash) });
});
