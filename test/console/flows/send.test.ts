import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';
import { hasChromium, useBrowser } from '../browser/browser.ts';

describe.skipIf(!hasChromium)('composing a push in a browser', () => {
  const service = useTestService();
  const browser = useBrowser();
  let app: App;
  const token = () => testConfig(service.databaseUrl).adminToken;
  const adminPath = (of: App, path: string) => `/console/api/apps/${of.appId}${path}`;
  beforeAll(async () => {
    app = await service.api.createApp();
    await service.addApnsProfile(app);
    await service.addIosInstallations(app, 20, { city: 'Rome' });
    await service.addIosInstallations(app, 30, { city: 'Oslo' });
    await service.dispatch();
  });
  const open = async (
    path: string,
    options: Parameters<typeof browser.page>[0] = {},
  ): Promise<Page> => {
    const page = await browser.page(options);
    await browser.login(page, service.api.url, token());
    await page.goto(`${service.api.url}/console${path}`);
    return page;
  };
  const compose = (of: App, query = '') => open(`/apps/${of.appId}/pushes/new${query}`);
  const sendButton = (page: Page, count: string) =>
    page.getByRole('button', { name: new RegExp(`^Send to ${count} device`) });
  const confirm = (page: Page) =>
    page.getByRole('alertdialog').getByRole('button', { name: 'Send', exact: true }).click();

  test('leads from an empty app to the first push, whose outcomes add up', async () => {
    const page = await open('');
    await page.getByLabel('Name', { exact: true }).fill('A new app');
    await page.getByRole('button', { name: 'Create the app' }).click();
    await page.getByRole('heading', { name: 'A new app', level: 1 }).waitFor();
    await page.getByRole('heading', { name: 'Get started' }).waitFor();
    const [, appId = ''] = /apps\/(\w+)/.exec(page.url()) ?? [];
    const empty = (await service.api.request('GET', `/console/api/apps/${appId}`, { admin: true }))
      .body;
    await service.addApnsProfile(empty);
    await service.addIosInstallations(empty, 3);
    await page.reload();
    await expect.poll(() => page.getByText('Done', { exact: true }).count()).toBe(2);
    await page.getByRole('link', { name: 'New push' }).click();
    await page.getByLabel('Text', { exact: true }).fill('Hello');
    await sendButton(page, '3').click();
    await confirm(page);
    await page.getByRole('heading', { name: 'Hello', level: 1 }).waitFor();
    await page.getByText('Done', { exact: true }).waitFor();
    const pushId = new URL(page.url()).pathname.split('/').at(-1) ?? '';
    const { body } = await service.api.request(
      'GET',
      adminPath(empty, `/notifications/${pushId}`),
      {
        admin: true,
      },
    );
    expect(body).toMatchObject({ devices: 3, outcomes: { sent: 3 } });
    await page.goto(`${service.api.url}/console/apps/${empty.appId}`);
    await page.getByRole('heading', { name: 'In progress' }).waitFor();
    await expect.poll(() => page.getByRole('heading', { name: 'Get started' }).count()).toBe(0);
  });

  test('lets a second person approve a push to many devices', async () => {
    const guarded = await service.api.createApp({ approvalAboveDevices: 2 });
    await service.addApnsProfile(guarded);
    await service.addIosInstallations(guarded, 3);
    const request = { app: guarded, master: true, body: { data: { alert: 'To many' } } };
    const { objectId } = (await service.api.request('POST', '/1.1/push', request)).body;
    const page = await open(`/apps/${guarded.appId}/pushes/${objectId}`);
    await page.getByText('It waits until a second person approves it').waitFor();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Approve and send' }).click();
    await page.getByText(/^Approved by admin/).waitFor();
    expect(await service.untilDone(guarded, objectId)).toMatchObject({ successes: 3 });
  });

  test('shows one body as form, JSON and curl, and keeps unknown members', async () => {
    const page = await compose(app);
    await page.getByLabel('Title').fill('News');
    await page.getByRole('tab', { name: 'JSON' }).click();
    const json = page.getByRole('textbox', { name: 'JSON' });
    expect(JSON.parse(await json.inputValue())).toEqual({ where: {}, data: { title: 'News' } });
    await json.fill(
      '{"where": {}, "data": {"title": "News", "alert": "A", "order": 12345678901234567890},',
    );
    await page
      .getByText(/A name in double quotes is expected here. \(line 1, column \d+\)/)
      .first()
      .waitFor();
    await json.fill('{\n  "where": {},\n  "data": {,\n}');
    await page.getByRole('button', { name: 'Go to line 3' }).click();
    await page.keyboard.insertText('"title": "News"}');
    await expect
      .poll(() => json.inputValue())
      .toBe('{\n  "where": {},\n  "data": {"title": "News"},\n}');
    // Tab leaves the text.
    await page.keyboard.press('Tab');
    await page.locator('button:focus').waitFor();
    await json.fill(
      '{"where": {}, "data": {"title": "News", "alert": "A", "order": 12345678901234567890}}',
    );
    await page.getByRole('tab', { name: 'Form' }).click();
    await page.getByLabel('Text', { exact: true }).fill('Changed');
    await page.getByRole('tab', { name: 'curl' }).click();
    await page
      .getByText(/"order": 12345678901234567890/)
      .first()
      .waitFor();
    await page
      .getByText(/"alert": "Changed"/)
      .first()
      .waitFor();
    await page.reload();
    await page
      .getByText(/"alert": "Changed"/)
      .first()
      .waitFor();
    await page.getByRole('button', { name: 'Start over' }).click();
    await page
      .getByText(/"data": \{\}/)
      .first()
      .waitFor();
  });

  test('sends only to devices of a condition that was built from rows', async () => {
    const page = await compose(app);
    await page.getByLabel('Text', { exact: true }).fill('To Rome');
    await sendButton(page, '50').waitFor();
    await page.getByRole('button', { name: '+ Condition' }).click();
    await page.getByText('A row of the condition is incomplete.').waitFor();
    await page.getByLabel('Field').fill('city');
    await page.locator('datalist option[value=Rome]').waitFor({ state: 'attached' });
    await page.getByLabel('Value', { exact: true }).fill('Rome');
    await page.getByText('Without this line: 50 devices').waitFor();
    await sendButton(page, '20').click();
    await confirm(page);
    await page.getByRole('heading', { name: 'To Rome', level: 1 }).waitFor();
    await page.getByRole('tab', { name: 'Audience' }).click();
    await page.getByText('city is Rome').waitFor();
  });

  test('reports every limit, and shows refusals at the member that they name', async () => {
    const page = await compose(app);
    await page.getByLabel('Text', { exact: true }).fill('Late');
    await page.getByText('Schedule and delivery').click();
    await page.getByLabel('Rate limit (devices per second)').fill('5');
    await page.getByText(/flow_control 5 counts as 1000/).waitFor();
    await page.getByLabel('Channels').fill('no good name!');
    await page.locator('[aria-invalid=true]').waitFor();
    expect(await page.getByLabel('Channels').getAttribute('aria-invalid')).toBe('true');
    await page.getByText('The push would be refused, for the reason above.').waitFor();
    await expect.poll(() => sendButton(page, '.*').isDisabled()).toBe(true);
  });

  test('runs the dry run automatically, after a slow one later, and on request', async () => {
    const page = await browser.page();
    await browser.login(page, service.api.url, token());
    const slowMs = 1500;
    // After the second run, the next one starts late enough that the click below comes before it.
    const slowerMs = 5000;
    const startsMs: number[] = [];
    await page.route('**/push/explain', async (route) => {
      startsMs.push(performance.now());
      await sleep(startsMs.length === 2 ? slowerMs : slowMs);
      await route.continue();
    });
    await page.goto(`${service.api.url}/console/apps/${app.appId}/pushes/new`);
    await page.getByRole('button', { name: 'Run again' }).waitFor();
    const typedMs = performance.now();
    await page.getByLabel('Text', { exact: true }).fill('Once');
    await expect.poll(() => startsMs.length).toBe(2);
    expect((startsMs[1] ?? 0) - typedMs).toBeGreaterThan(2 * slowMs - 100);
    await sendButton(page, '50').waitFor();
    await page.getByLabel('Text', { exact: true }).fill('Twice');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await expect.poll(() => startsMs.length).toBe(3);
    await sendButton(page, '50').waitFor();
    await page.getByRole('button', { name: 'Run again' }).click();
    await expect.poll(() => startsMs.length).toBe(4);
  });

  test('sends nothing if the audience changed, and shows the new number', async () => {
    const moving = await service.api.createApp();
    await service.addApnsProfile(moving);
    await service.addIosInstallations(moving, 10);
    const page = await compose(moving);
    await page.getByLabel('Text', { exact: true }).fill('Moved');
    await sendButton(page, '10').waitFor();
    await service.addIosInstallations(moving, 5);
    await sendButton(page, '10').click();
    await confirm(page);
    await page
      .getByText('The audience has changed: 15 devices now, 10 in the dry run. Nothing was sent.')
      .waitFor();
    await sendButton(page, '15').click();
    await confirm(page);
    await page.getByRole('heading', { name: 'Moved', level: 1 }).waitFor();
    const list = await service.api.request('GET', adminPath(moving, '/notifications'), {
      admin: true,
    });
    expect(list.body.results.length).toBe(1);
  });

  test('copies a push, and undoes a push in the ten seconds before it starts', async () => {
    const body = {
      data: { alert: 'Copied', ios: { badge: 7 } },
      where: { city: 'Oslo' },
      flow_control: 2000,
    };
    const sent = await service.api.request('POST', '/1.1/push', { app, master: true, body });
    const page = await open(`/apps/${app.appId}/pushes/${sent.body.objectId}`);
    await page.getByRole('link', { name: 'Duplicate' }).click();
    await page.getByRole('tab', { name: 'JSON' }).click();
    const json = page.getByRole('textbox', { name: 'JSON' });
    expect(JSON.parse(await json.inputValue())).toEqual(body);
    await page.getByRole('tab', { name: 'Form' }).click();
    await page.getByLabel('Text', { exact: true }).fill('Undone');
    await page.getByLabel('Now, with 10 s to undo').check();
    await sendButton(page, '30').click();
    await confirm(page);
    await page.getByRole('button', { name: 'Undo the push' }).click();
    await page.getByText('Cancelled', { exact: true }).waitFor();
  });

  test('saves templates, conditions and test devices, and sends to test devices', async () => {
    const saving = await service.api.createApp();
    await service.addApnsProfile(saving);
    const [device = ''] = await service.addIosInstallations(saving, 4, { city: 'Rome' });
    const page = await compose(saving);
    await page.getByLabel('Text', { exact: true }).fill('A template');
    const save = async (list: string, button: string, name: string) => {
      await page.getByRole('button', { name: list, exact: true }).click();
      await page.getByLabel('Name', { exact: true }).fill(name);
      if (list === 'Test devices') await page.getByLabel('Device', { exact: true }).fill(device);
      await page.getByRole('button', { name: button }).click();
      await page.getByText(name, { exact: true }).waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    };
    await page.getByRole('button', { name: '+ Condition' }).click();
    await page.getByLabel('Field').fill('city');
    await page.getByLabel('Value', { exact: true }).fill('Rome');
    await save('Saved audiences', 'Save the audience', 'In Rome');
    await save('Drafts and templates', 'Save the push', 'Of the week');
    await save('Test devices', 'Add the device', 'My phone');
    await page.getByRole('button', { name: 'Send to 1 test device' }).click();
    await page.getByText('Sent to the test devices.').waitFor();
    const list = await service.api.request('GET', adminPath(saving, '/notifications'), {
      admin: true,
    });
    await service.untilDone(saving, list.body.results[0].objectId);
    const { body } = await service.api.request('GET', adminPath(saving, '/notifications'), {
      admin: true,
    });
    expect(body.results).toMatchObject([{ devices: 1, outcomes: { sent: 1 } }]);
    await page.getByRole('button', { name: 'Start over' }).click();
    await page.getByRole('button', { name: 'Drafts and templates', exact: true }).click();
    await page.getByRole('button', { name: 'Use' }).click();
    await expect
      .poll(() => page.getByLabel('Text', { exact: true }).inputValue())
      .toBe('A template');
    await expect.poll(() => page.getByLabel('Value', { exact: true }).inputValue()).toBe('Rome');
    // A used draft is saved again under its name.
    await page.getByRole('button', { name: 'Drafts and templates', exact: true }).click();
    const name = page.getByRole('dialog').getByLabel('Name', { exact: true });
    await expect.poll(() => name.inputValue()).toBe('Of the week');
  });

  test('lists a template that is saved before the list is loaded', async () => {
    const page = await compose(app);
    const loaded = Promise.withResolvers<void>();
    let reads = 0;
    await page.route('**/push-templates', async (route) => {
      reads += 1;
      // The first reply is from before the template was saved.
      const response = await route.fetch();
      if (reads === 1) await loaded.promise;
      return route.fulfill({ response }).catch(() => undefined);
    });
    await page.getByRole('button', { name: 'Drafts and templates', exact: true }).click();
    await expect.poll(() => reads).toBe(1);
    await page.getByLabel('Name', { exact: true }).fill('Early');
    const saved = page.waitForResponse((response) => response.request().method() === 'PUT');
    await page.getByRole('button', { name: 'Save the push' }).click();
    await saved;
    loaded.resolve();
    await page.getByText('Early', { exact: true }).waitFor();
  });

  test('schedules, moves and cancels a push', async () => {
    const page = await compose(app);
    await page.getByLabel('Text', { exact: true }).fill('Tomorrow');
    await page.getByText('Schedule and delivery').click();
    await page.getByLabel('Schedule', { exact: true }).check();
    await page.getByText(/ UTC$/).waitFor();
    await page.getByRole('button', { name: 'Schedule for 50 devices' }).click();
    const question = page.getByRole('alertdialog', { name: 'Schedule for 50 devices?' });
    await question.getByRole('button', { name: 'Schedule' }).click();
    await page.getByRole('heading', { name: 'Tomorrow', level: 1 }).waitFor();
    await page.getByText('Scheduled', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Pushes', exact: true }).click();
    await page.getByRole('link', { name: 'Scheduled pushes' }).click();
    await page.getByRole('button', { name: 'Move' }).click();
    await page.getByLabel(/^Time \(/).fill('2030-05-06T07:08');
    await page.keyboard.press('Enter');
    await page.locator(`time[datetime="${new Date(2030, 4, 6, 7, 8).toISOString()}"]`).waitFor();
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel the push' }).click();
    await page.getByText(/^No push is scheduled/).waitFor();
  });

  test('defines a recurring push, shows its next runs, and runs it now', async () => {
    const page = await open(`/apps/${app.appId}/pushes`);
    await page.getByRole('link', { name: 'Recurring pushes' }).click();
    await page.getByText('No push recurs yet.', { exact: false }).waitFor();
    await page.getByRole('link', { name: 'New recurring push' }).click();
    await page.getByRole('heading', { name: 'New recurring push', level: 1 }).waitFor();
    const fields = ['Repeats', 'Cron expression', 'Time zone'].map((name) =>
      page.getByLabel(name, { exact: true }),
    );
    const boxes = await Promise.all(fields.map((field) => field.boundingBox()));
    // Fields in a row have the same position and height.
    for (const side of ['y', 'height'] as const)
      expect(new Set(boxes.map((box) => Math.round(box?.[side] ?? -1))).size, side).toBe(1);
    await page.getByLabel('Name', { exact: true }).fill('Leap day');
    await page.getByLabel('Cron expression').fill('* * * * *');
    await page.getByText('expression: at most one push every 5 minutes.').waitFor();
    await page.getByLabel('Cron expression').fill('30 9 29 2 *');
    await page.getByLabel('Time zone').fill('Asia/Tokyo');
    const times = page.getByRole('list', { name: 'Next times' }).getByRole('listitem');
    await expect.poll(() => times.count()).toBe(10);
    await times
      .first()
      .getByText(/-02-29 00:30 UTC$/)
      .waitFor();
    await times.first().getByText(/09:30/).waitFor();
    const create = page.getByRole('button', { name: 'Create', exact: true });
    await expect.poll(() => create.isDisabled()).toBe(true);
    await page.getByLabel('Text', { exact: true }).fill('Leap');
    await page.getByRole('button', { name: '+ Condition' }).click();
    await page.getByLabel('Field', { exact: true }).fill('city');
    await page.getByLabel('Value', { exact: true }).fill('Rome');
    await create.click();
    const question = page.getByRole('alertdialog');
    await question.getByText('city is Rome').waitFor();
    await question.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByRole('button', { name: 'Send now: Leap day' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Send now' }).click();
    await page.getByRole('link', { name: '1', exact: true }).click();
    await page.getByRole('link', { name: 'Leap', exact: true }).click();
    // The previous list has a filter with the same words.
    await page.getByRole('heading', { name: 'Leap', level: 1 }).waitFor();
    await page.getByText('Done', { exact: true }).waitFor();
    const pushId = new URL(page.url()).pathname.split('/').at(-1) ?? '';
    expect(await service.untilDone(app, pushId)).toMatchObject({ devices: 20, successes: 20 });
    await page.getByRole('tab', { name: 'Content' }).click();
    await page.getByRole('link', { name: 'Leap day' }).click();
    await page.getByRole('button', { name: 'Disable Leap day' }).click();
    await page.getByText('Disabled', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Leap day', exact: true }).click();
    await page.getByRole('heading', { name: 'Change Leap day', level: 1 }).waitFor();
    await expect.poll(() => page.getByLabel('Text', { exact: true }).inputValue()).toBe('Leap');
    await page.getByLabel('Name', { exact: true }).fill('Leap years');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await question.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByRole('link', { name: 'Leap years' }).waitFor();
    const path = adminPath(app, '/recurring-pushes');
    const { results } = (await service.api.request('GET', path, { admin: true })).body;
    expect(results).toMatchObject([
      {
        name: 'Leap years',
        expression: '30 9 29 2 *',
        timeZone: 'Asia/Tokyo',
        isEnabled: false,
        starts: 1,
      },
    ]);
  });

  test('shows scheduled and recurring pushes in a calendar', async () => {
    const planned = await service.api.createApp();
    await service.addApnsProfile(planned);
    await service.addIosInstallations(planned, 1);
    const soon = new Date(Date.now() + 3_600_000);
    const body = { data: { alert: 'In an hour' }, push_time: soon.toISOString() };
    await service.api.request('POST', '/1.1/push', { app: planned, master: true, body });
    const definition = {
      name: 'Every night',
      expression: '30 2 * * *',
      timeZone: 'Etc/UTC',
      body: { where: {}, data: { alert: 'Good night' } },
    };
    const path = adminPath(planned, '/recurring-pushes');
    await service.api.request('POST', path, { admin: true, body: definition });
    const page = await open(`/apps/${planned.appId}/pushes/scheduled`);
    const days = page.getByRole('list').filter({ hasText: 'Every night' });
    const turn = () => page.getByRole('button', { name: 'Next month' }).click();
    // The hour or the night may be in the next month.
    if (soon.getMonth() !== new Date().getMonth()) await turn();
    await days.getByRole('link', { name: 'In an hour' }).waitFor();
    await page.getByRole('link', { name: '↻ Every night' }).first().waitFor();
    // A push at local time is on its day at its time, not at the moment of the first time zone.
    const day = new Date(soon.getTime() + 86_400_000).toISOString().slice(0, 10);
    const local = { data: { alert: 'Local' }, push_time: `${day}T20:30`, push_time_local: true };
    await service.api.request('POST', '/1.1/push', { app: planned, master: true, body: local });
    await page.reload();
    if (day.slice(0, 7) !== new Date().toISOString().slice(0, 7)) await turn();
    const localDay = page.getByRole('listitem').filter({ hasText: 'Local' });
    await localDay.getByText('20:30').first().waitFor();
    await page.getByRole('button', { name: 'Previous month' }).waitFor();
  });

  test('draws the message from the requests to the gateways', async () => {
    const page = await compose(app);
    await page.getByLabel('Title').fill('Preview of a title');
    await page.getByLabel('Text', { exact: true }).fill('and of a text');
    await page
      .getByRole('img', { name: 'Lock screen of iOS: Preview of a title, and of a text' })
      .waitFor();
    await page.getByText(/^\d+ of 4,096 bytes$/).waitFor();
  });

  test('requires that a number above 10,000 devices is typed', async () => {
    const large = await service.api.createApp();
    await service.addApnsProfile(large);
    await service.addIosInstallations(large, 10_001);
    const page = await compose(large);
    await page.getByLabel('Text', { exact: true }).fill('To many');
    await sendButton(page, '10,001').click();
    const send = page.getByRole('alertdialog').getByRole('button', { name: 'Send', exact: true });
    await expect.poll(() => send.isDisabled()).toBe(true);
    await page.getByLabel('Type 10001 to continue').fill('10,000');
    await expect.poll(() => send.isDisabled()).toBe(true);
    await page.getByLabel('Type 10001 to continue').fill('10,001');
    await expect.poll(() => send.isEnabled()).toBe(true);
  });

  test('composes and sends by keyboard only', async () => {
    const page = await open(`/apps/${app.appId}`);
    await page.getByRole('heading', { name: 'In progress' }).waitFor();
    await page.keyboard.press('c');
    await page.getByRole('heading', { name: 'New push', level: 1 }).waitFor();
    const focused = () =>
      page.evaluate<string>('document.activeElement?.textContent || document.activeElement?.id');
    await expect.poll(focused).toBe('New push');
    const tabTo = async (name: string) => {
      const at =
        'document.activeElement?.labels?.[0]?.textContent ?? document.activeElement?.textContent';
      for (let presses = 0; (await page.evaluate<string>(at)) !== name; presses += 1) {
        if (presses > 60) throw new Error(`no way to ${name} by Tab`);
        await page.keyboard.press('Tab');
      }
    };
    await tabTo('Text');
    await page.keyboard.type('By keys');
    await sendButton(page, '50').waitFor();
    await tabTo('Send to 50 devices');
    await page.keyboard.press('Enter');
    await page.getByRole('alertdialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('alertdialog').waitFor({ state: 'detached' });
    await expect.poll(focused).toBe('Send to 50 devices');
    await page.keyboard.press('Enter');
    await page.getByRole('alertdialog').waitFor();
    await tabTo('Send');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'By keys', level: 1 }).waitFor();
  });
});
