import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { reasonText } from '../../../shared/domain/reasons.ts';
import { carillon } from '../../support/cli.ts';
import { useTestService } from '../../support/service.ts';
import { blocksOf, serviceEnvironment } from './pages.ts';

const service = useTestService();
let folder: string;
/** Values for the placeholders in angle brackets. */
let values: Record<string, string>;

/** Creates a second app with a finished push that did not reach its device. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'carillon-operate-'));
  const app = await service.api.createApp();
  await service.api.createApp();
  await service.addApnsProfile(app);
  await service.addIosInstallations(app, 1);
  service.apns.misbehave({ kind: 'answer', status: 403, reason: 'InvalidProviderToken' });
  await service.dispatch();
  const { body } = await service.api.request('POST', '/1.1/push', {
    app,
    master: true,
    body: { data: { alert: 'Hello' } },
  });
  await service.untilDone(app, body.objectId);
  const { appId } = app;
  const failure = await service.db.query<{ reason: string }>('SELECT reason FROM push_failure');
  values = {
    '<app id>': appId,
    '<appId>': appId,
    '<objectId>': body.objectId,
    '<id>': '1',
    '<reason>': reasonText(failure.rows[0]?.reason ?? ''),
  };
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** Splits a command like a shell. Leaves out the name of the program and the output file. */
const argumentsOf = (command: string): string[] =>
  (command.replace(/ > .*$/, '').match(/'[^']*'|"[^"]*"|\S+/g) ?? [])
    .slice('npx carillon'.split(' ').length)
    .map((word) => word.replace(/^(['"])(.*)\1$/, '$2'));

/** Commands that this service refuses, with the reason. Here no push waits for approval. */
const refusals = new Map([['npx carillon approve', 'cannot be approved']]);

test.each(['operate/people.md', 'operate/redrive.md'])(
  'every command of docs/%s works',
  async (page) => {
    const lines = (await blocksOf(page, 'sh')).flatMap((block) => block.trim().split('\n'));
    expect(lines.length).toBeGreaterThan(9);
    // The day in the example is in the future, but the commands need a past time.
    const past = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
    const commands = lines
      .map((line) =>
        line.replace(/\s+#.*$/, '').replaceAll(/(--from )\d{4}-\d\d-\d\d/g, `$1${past}`),
      )
      .map((line) =>
        Object.entries(values).reduce((text, [name, id]) => text.replaceAll(name, id), line),
      );
    for (const command of commands) {
      const { code, stdout, stderr } = await carillon(argumentsOf(command), {
        cwd: folder,
        env: serviceEnvironment(service),
      });
      const refusal = refusals.get(command.split(' ').slice(0, 3).join(' '));
      expect(refusal ? stderr : code, command + stdout + stderr).toEqual(
        refusal ? expect.stringContaining(refusal) : 0,
      );
    }
  },
);
