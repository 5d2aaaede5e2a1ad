import { describe, expect, test } from 'vitest';
import { continueIdleWalk } from '../../../shared/db/tables/installation-walks.ts';
import { anInstallation, newId, useImports } from '../../support/import/imports.ts';
import { changeDevices, daysAgo } from '../../support/tables.ts';

const fixture = useImports();
const { run, imported, importedByCommand, exportFile, installationAt, countOf, asMaster } = fixture;

describe('installations', () => {
  test('keep their ids, times, channels and every typed value, as in the REST API', async () => {
    const custom = {
      city: 'São\tPaulo \\N "{x}" \n 你好',
      level: 7.25,
      orders: [7091800003790954036n, { last: -7091800003790954037n }],
      flags: [true, null, { a: [] }],
      seenAt: { __type: 'Date', iso: '2025-01-31T12:00:00.000Z' },
      owner: { __type: 'Pointer', className: '_User', objectId: newId() },
      place: { __type: 'GeoPoint', latitude: 31.5, longitude: -121 },
      bytes: { __type: 'Bytes', base64: 'aGVsbG8=' },
      constructor: 'a name',
      nothing: null,
    };
    const ios = anInstallation({
      ...custom,
      channels: ['news', '新闻', ''],
      apnsTopic: 'com.example.app',
      apnsTeamId: 'TEAM',
      timeZone: 'Asia/Shanghai',
      badge: 3,
      valid: false,
    });
    const android = anInstallation({
      deviceType: 'android',
      deviceToken: undefined,
      installationId: newId(),
      vendor: 'HMS',
      registrationId: 'r:1',
      deviceProfile: 'Beta',
      channels: [],
    });
    await exportFile('_Installation.0.jsonl', [ios, android], '_Installation');
    expect(await importedByCommand(fixture.folder)).toMatchObject({
      code: 0,
      stderr: '',
      dryRun: false,
      classes: { _Installation: { read: 2, imported: 2, alreadyThere: 0, refused: 0 } },
      refusals: [],
    });
    expect(await installationAt(ios.objectId)).toEqual(ios);
    const { deviceToken: _, ...sent } = android;
    expect(await installationAt(android.objectId)).toEqual({ ...sent, valid: true });
  });

  test('are found by where and channel, and can register again with their ids', async () => {
    const one = anInstallation({ channels: ['news'], level: 9 });
    await imported(await exportFile('_Installation.jsonl', [one]));
    const where = encodeURIComponent(JSON.stringify({ level: { $gt: 8 }, channels: 'news' }));
    const { body } = await asMaster(`/installations?where=${where}`);
    expect(body.results).toEqual([{ ...one, valid: true }]);
    const { deviceType, deviceToken } = one;
    const again = await fixture.api.request('POST', '/1.1/installations', {
      app: fixture.app,
      body: { deviceType, deviceToken },
    });
    expect(again.body.objectId).toBe(one.objectId);
  });

  test('stay unchanged in a second run, which counts the existing ones', async () => {
    const records = Array.from({ length: 50 }, (_, i) => anInstallation({ level: i }));
    const path = await exportFile('_Installation.jsonl.gz', [...records, records[0] ?? {}]);
    expect((await imported(path)).classes._Installation).toMatchObject({
      imported: 50,
      alreadyThere: 1,
    });
    const rows = () =>
      fixture.db.query('SELECT * FROM installation WHERE app_id = $1 ORDER BY id', [
        fixture.app.appId,
      ]);
    const before = await rows();
    const renewed = {
      ...records[1],
      level: 'other',
      updatedAt: new Date(Date.now() + 5000).toISOString(),
    };
    await exportFile('_Installation.jsonl.gz', [...records.slice(2), renewed]);
    expect(await imported(path)).toMatchObject({
      code: 0,
      classes: {
        _Installation: { read: 49, imported: 0, alreadyThere: 49, newerInFile: 1, refused: 0 },
      },
    });
    expect((await rows()).rows).toEqual(before.rows);
  });

  test('are refused with values of another object in app or file, also in a dry run', async () => {
    const live = await fixture.api.request('POST', '/1.1/installations', {
      app: fixture.app,
      body: { deviceType: 'android', installationId: newId(), deviceToken: newId() },
    });
    const there = await installationAt(live.body.objectId);
    const first = anInstallation();
    const path = await exportFile('_Installation.jsonl', [
      first,
      anInstallation({ deviceToken: String(there.deviceToken).toUpperCase() }),
      anInstallation({ installationId: there.installationId }),
      anInstallation({ deviceToken: String(first.deviceToken).toUpperCase() }),
      first,
    ]);
    const expected = {
      code: 1,
      classes: { _Installation: { read: 5, imported: 1, alreadyThere: 1, refused: 3 } },
      refusals: expect.arrayContaining([
        expect.objectContaining({
          line: 2,
          error: `deviceToken belongs to ${there.objectId} already.`,
        }),
        expect.objectContaining({
          line: 3,
          error: `installationId belongs to ${there.objectId} already.`,
        }),
        expect.objectContaining({
          line: 4,
          error: `deviceToken belongs to ${first.objectId} already.`,
        }),
      ]),
    };
    expect(await importedByCommand(path, '--dry-run')).toMatchObject({ ...expected, dryRun: true });
    expect(await countOf('installation')).toBe(1);
    expect(await imported(path)).toMatchObject({ ...expected, dryRun: false });
    expect(await countOf('installation')).toBe(2);
    expect(await installationAt(there.objectId)).toEqual(there);
  });

  test('count as idle only from the import on: until then they get pushes and stay', async () => {
    const updatedAt = '2020-01-01T00:00:00.000Z';
    const one = anInstallation({
      updatedAt,
      deviceType: 'android',
      installationId: newId(),
      deviceToken: undefined,
    });
    await imported(await exportFile('_Installation.jsonl', [one]));
    expect((await installationAt(one.objectId)).updatedAt).toBe(updatedAt);
    const { appId } = fixture.app;
    const body = { data: { alert: 'Hello' } };
    const devices = async () =>
      (
        await fixture.api.request('POST', `/console/api/apps/${appId}/push/explain`, {
          admin: true,
          body,
        })
      ).body.devices;
    const now = new Date();
    const deleteOlderThan = (before: Date) =>
      continueIdleWalk(fixture.db, { appId, before, limit: 10, now, nextAt: now });
    expect(await devices()).toBe(1);
    expect(await deleteOlderThan(new Date(Date.now() - 60_000))).toBe(0);
    await changeDevices(fixture.db, { appId }, { importedAt: daysAgo(366) });
    expect(await devices()).toBe(0);
    expect(await deleteOlderThan(new Date(Date.now() - 365 * 86_400_000))).toBe(1);
  });

  test('are counted if the app considers them idle', async () => {
    const path = await exportFile('_Installation.jsonl', [
      anInstallation({ updatedAt: '2020-01-01T00:00:00.000Z' }),
      anInstallation(),
    ]);
    const { code, stdout } = await run([path]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/1 installations were last seen more than 365 days ago/);
  });
});
