import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';

/** Call of a hook with its arguments. */
export interface RanHook {
  hook: string;
  // Free-form JSON, and tests assert on it.
  // biome-ignore lint/suspicious/noExplicitAny: see above
  [member: string]: any;
}

export interface TestEngine {
  url: string;
  ran: RanHook[];
  /** Resolves with the arguments of a hook when it has run for an object. */
  waitFor(hook: string, objectId: string): Promise<RanHook>;
  close(): Promise<void>;
}

/** Starts `leanengine` for an app. */
export async function startEngine(
  app: App,
  { apiUrl, withHooks = false }: { apiUrl: string; withHooks?: boolean },
): Promise<TestEngine> {
  const child = fork(fileURLToPath(new URL('engine-app.cjs', import.meta.url)), {
    execArgv: [],
    env: {
      PATH: process.env.PATH,
      APP_ID: app.appId,
      APP_KEY: app.appKey,
      MASTER_KEY: app.masterKey,
      HOOK_KEY: app.hookKey,
      API_URL: apiUrl,
      ...(withHooks ? { WITH_HOOKS: '1' } : {}),
    },
  });
  const ran: RanHook[] = [];
  const port = await new Promise<number>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the engine ended with ${code}`)));
    child.on('message', (message: RanHook & { port?: number }) => {
      if (message.port === undefined) ran.push(message);
      else resolve(message.port);
    });
  });
  const find = (hook: string, id: string) =>
    ran.find((one) => one.hook === hook && one.object?.objectId === id);
  return {
    url: `http://127.0.0.1:${port}`,
    ran,
    async waitFor(hook, id) {
      await expect.poll(() => find(hook, id), { message: hook }).toBeDefined();
      return find(hook, id) ?? { hook };
    },
    async close() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill();
      await once(child, 'exit');
    },
  };
}
