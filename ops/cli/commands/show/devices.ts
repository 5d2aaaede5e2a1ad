import { app, argument, flag, optional, page, text, type Values } from '../../arguments.ts';
import { command } from '../../command.ts';
import { say } from '../../language.ts';
import type { Report } from '../../report.ts';
import { type Columns, type Item, listed, row } from '../../row.ts';
import { chooseAppId, connect } from '../../service.ts';

const filters = {
  q: text('--q <id>', 'an objectId, installationId, device token or registration id'),
  where: text('--where <json>', 'condition'),
  ...page(),
};
const options = {
  id: optional('[id]', 'one device'),
  app: app(),
  pushes: flag('--pushes', 'what became of the newest pushes at this device'),
  ...filters,
};

const columns: Columns<Item<'listAppInstallations'>> = {
  device: ({ objectId }) => objectId,
  type: ({ deviceType }) => deviceType,
  saved: ({ updatedAt }) => updatedAt,
};

/** `carillon devices` and `search`. */
export const deviceReports = [
  command('devices', 'list the devices of an application, or show one', {
    example: `devices --where '{"channels":"news"}'`,
    takes: options,
    run: showDevices,
  }),
  row(
    'devices delete-invalid',
    'delete the devices whose tokens a push found invalid and kept; devices saved since stay',
    {
      example: 'devices delete-invalid Xk3vD9wq0TgTz1aB',
      operation: 'deleteInvalidDevices',
      path: { id: argument('<push>') },
      show: ({ deleted }) => say('{n} devices are deleted.', { n: deleted }),
    },
  ),
  row('search', 'find applications, pushes, devices and users by an id, a token or a name', {
    example: 'search ada@example.com',
    operation: 'search',
    query: { q: argument('<text>'), app: text('--app <appId>', 'only in this application') },
    columns: { what: 'kind', app: 'appId', id: 'id', title: 'title' },
  }),
];

async function showDevices({
  id,
  app: requestedAppId,
  pushes,
  ...query
}: Values<typeof options>): Promise<Report> {
  const service = await connect();
  const appId = await chooseAppId(service, requestedAppId);
  if (id === undefined) {
    const reply = await service.call('listAppInstallations', { path: { appId }, query });
    return { document: reply, text: listed(reply.results, columns, { next: reply.next }) };
  }
  const path = { appId, id: await service.deviceId(appId, id) };
  const reply = await service.call(pushes ? 'listInstallationPushes' : 'getAppInstallation', {
    path,
  });
  return { document: reply, text: JSON.stringify(reply, null, 2) };
}
