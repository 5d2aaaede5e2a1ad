import { app, device, flag, json, members, required, type Values, whole } from '../../arguments.ts';
import { command, group } from '../../command.ts';
import { confirm } from '../../input.ts';
import { say } from '../../language.ts';
import { CommandFailure, type Report } from '../../report.ts';
import { row } from '../../row.ts';
import { chooseAppId, connect, type ServiceClient } from '../../service.ts';

const deletionOptions = {
  where: required(json('--where <json or file>', 'condition; {} means all devices')),
  expected: whole(
    '--expected <n>',
    'number of them; another number is refused. Without it they are counted first',
  ),
  app: app(),
  yes: flag('--yes', 'do not ask'),
};

/** `carillon device …`: changes and deletes devices of an application. */
export const deviceCommands = [
  group('device', 'change and delete devices; `devices` lists them'),
  row('device update', 'write members of a device (JSON or a file), such as {"channels":["news"]}', {
    example: `device update 6735d1a2c3f04b0012ab34cd '{"channels":["news"]}'`,
    operation: 'updateAppInstallation',
    path: { id: device('<id>') },
    document: members('<members>', 'JSON or a file'),
  }),
  row('device delete', 'delete a device', {
    example: 'device delete 6735d1a2c3f04b0012ab34cd --yes',
    operation: 'deleteAppInstallation',
    path: { id: device('<id>') },
    confirm: ({ id }) => say('Delete device {id} for good?', { id }),
    show: (_reply, { id }) => say('Device {id} is deleted.', { id }),
  }),
  command('device delete-all', 'delete all devices that meet a condition, at most 100,000 at once', {
    example: `device delete-all --where '{"deviceType":"web"}'`,
    takes: deletionOptions,
    run: removeAll,
  }),
];

async function removeAll(
  { app: asked, where, expected, yes }: Values<typeof deletionOptions>,
  { isJson }: { isJson: boolean },
): Promise<Report> {
  const service = await connect();
  const appId = await chooseAppId(service, asked);
  const matching = expected ?? (await count(service, appId, where));
  if (!yes && !isJson) await confirm(say('Delete {n} devices for good?', { n: matching }));
  const body = { where, expected: matching };
  const document = await service.call('deleteMatchingInstallations', { path: { appId }, body });
  return { document, text: say('{n} devices are deleted.', { n: document.deleted }) };
}

/**
 * Counts the devices that meet a condition. Throws `CommandFailure` if there are more than the
 * service counts.
 */
async function count(service: ServiceClient, appId: string, where: object): Promise<number> {
  const query = { where: JSON.stringify(where), count: '1', limit: 1 } as const;
  const reply = await service.call('listAppInstallations', { path: { appId }, query });
  const { count: found = 0, countIsLeast } = reply;
  if (countIsLeast)
    throw new CommandFailure(say('More than {n} devices match: say how many with --expected.', { n: found }));
  return found;
}
