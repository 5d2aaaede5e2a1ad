import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { say } from '../cli/language.ts';

/** Returns the port if it is free now. Rejects if it cannot be used. */
function tryPort(port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, host, () => server.close(() => resolve(port)));
  });
}

/** True if a port is free now. */
export const isPortFree = (port: number, host: string): Promise<boolean> =>
  tryPort(port, host).then(
    () => true,
    () => false,
  );

/**
 * Chooses a port: the requested port, otherwise the default port, otherwise any free port. The
 * default port is taken if, for example, a second clone runs on the machine. Port 0 requests any
 * free port. If the requested port is taken, throws an error for the operator.
 */
export async function choosePort(choice: {
  requested: number | undefined;
  defaultPort: number;
  host: string;
  variable: string;
}): Promise<number> {
  const { requested, defaultPort, host, variable } = choice;
  if (requested === 0) return freePort(host);
  try {
    return await tryPort(requested ?? defaultPort, host);
  } catch (error) {
    if (requested === undefined) return freePort(host);
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new Error(
      say('{variable}={port} cannot be used on {host} ({code}); choose another port', {
        variable,
        host,
        code,
        port: requested,
      }),
      { cause: error },
    );
  }
}

/** Ports that no system gives to a program that asks for any port, or to an outgoing connection. */
const fixedPorts = { from: 28_000, below: 32_000 };
const tries = 100;

/**
 * Returns a port that is free now, on loopback by default. It stays free while its server is down,
 * because the system gives it to nobody else. Throws if no free port is found.
 */
export async function freePort(host = '127.0.0.1'): Promise<number> {
  for (let i = 0; i < tries; i += 1) {
    const port = randomInt(fixedPorts.from, fixedPorts.below);
    if (await isPortFree(port, host)) return port;
  }
  throw new Error(`no free port between ${fixedPorts.from} and ${fixedPorts.below}`);
}
