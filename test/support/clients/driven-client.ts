import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasPrograms, minutesMs, run } from '../../../ops/check/toolchains.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../api.ts';
import { startEngine, type TestEngine } from '../sdk/engine.ts';
import { type TestService, useTestService } from '../service.ts';
import { type TableRow, testTableRow } from './table-row.ts';

/** Line that a driver program prints for each check: the topic, and the reason if it failed. */
interface Check {
  readonly topic: string;
  readonly check: string;
  readonly error?: string;
}

/** Published client of other authors, and our program that drives it. */
interface DrivenClient extends TableRow {
  readonly programs: readonly string[];
  /** Installs the client. Returns the command that starts the program. */
  prepare(): Promise<{ command: string; args: string[]; env?: Record<string, string> }>;
}

/**
 * Runs a driver program once against a running service. Each topic becomes a test. The program gets
 * the service in `CARILLON_URL`, `APP_ID`, `APP_KEY`, `MASTER_KEY` and `ADMIN_TOKEN` (for codes and
 * links in the outbox), and prints each check as a line of JSON. The app's functions are those of
 * engine-app.cjs. Pushes to iOS go to the APNs sandbox.
 */
export function testDrivenClient(client: DrivenClient): void {
  describe.skipIf(!hasPrograms(client.programs, client.name))(client.name, () => {
    const service = useTestService();
    let engine: TestEngine;
    let checks: Check[];
    let folder: string | undefined;

    beforeAll(async () => {
      const bare = await service.api.createApp({ emailVerification: true, allowUserQuery: true });
      engine = await startEngine(bare, { apiUrl: service.api.url });
      const app = await service.api.services.apps.change(bare.appId, {
        options: { functionsUrl: engine.url },
      });
      await service.addApnsProfile(app);
      await service.dispatch();
      const { command, args, env = {} } = await client.prepare();
      // Some SDKs store files in the working directory.
      folder = await mkdtemp(join(tmpdir(), 'carillon-client-'));
      const all = { ...environmentOf(service, app), ...env };
      const printed = await run(command, args, { cwd: folder, env: all });
      checks = printed
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line));
    }, minutesMs);
    afterAll(async () => {
      await engine?.close();
      if (folder) await rm(folder, { recursive: true });
    });

    test.each(client.topics)('%s', (topic) => {
      const own = checks.filter((one) => one.topic === topic);
      expect(own.filter(({ error }) => error !== undefined)).toEqual([]);
      expect(own.length).toBeGreaterThan(0);
    });

    test('drives no other topics', () => {
      expect([...new Set(checks.map(({ topic }) => topic))].sort()).toEqual(
        [...client.topics].sort(),
      );
    });

    testTableRow(client);
  });
}

const environmentOf = ({ api, databaseUrl }: TestService, app: App): Record<string, string> => ({
  CARILLON_URL: api.url,
  APP_ID: app.appId,
  APP_KEY: app.appKey,
  MASTER_KEY: app.masterKey,
  ADMIN_TOKEN: testConfig(databaseUrl).adminToken,
});
