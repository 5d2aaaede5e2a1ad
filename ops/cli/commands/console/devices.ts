import { z } from 'zod';
import { confirm } from '../../confirm.ts';
import { dictionaryOrFile, wholeNumber } from '../../input.ts';
import { CommandFailure, type Report, type Shell } from '../../report.ts';
import { chooseAppId, connect, devicePart, part, type ServiceClient } from '../../service.ts';

interface AppOption {
  app?: string;
}

interface DeletionOptions extends AppOption {
  where: string;
  expected?: string;
  yes?: boolean;
}

interface Devices {
  service: ServiceClient;
  /** Path of the devices of the application. */
  path: string;
  /** Returns the path of one device. */
  pathOf(id: string): Promise<string>;
}

const app = ['--app <appId>', 'the application; not needed when there is only one'] as const;
const yes = ['--yes', 'do not ask'] as const;

/** Adds `carillon device …`: changes and deletes devices of an application. */
export function addDeviceCommands({ program, act, isJson }: Shell): void {
  const devices = program.command('device').description('change and delete devices; `devices` lists them');
  devices
    .command('update <id> <members>')
    .description('write members of a device (JSON or a file), such as {"channels":["news"]}')
    .option(...app)
    .action(act(update));
  devices
    .command('delete <id>')
    .description('delete a device')
    .option(...app)
    .option(...yes)
    .action(
      act((id: string, options: AppOption & { yes?: boolean }) =>
        remove(id, { ...options, yes: options.yes || isJson() }),
      ),
    );
  devices
    .command('delete-all')
    .description('delete all devices that meet a condition, at most 100,000 at once')
    .requiredOption('--where <json or file>', 'condition; {} means all devices')
    .option('--expected <n>', 'number of them; another number is refused. Without it they are counted first')
    .option(...app)
    .option(...yes)
    .action(act((options: DeletionOptions) => removeAll({ ...options, yes: options.yes || isJson() })));
}

async function devicesOf(asked: string | undefined): Promise<Devices> {
  const service = await connect();
  const appId = await chooseAppId(service, asked);
  const path = `/apps/${part(appId)}/installations`;
  return { service, path, pathOf: async (id) => `${path}/${await devicePart(service, appId, id)}` };
}

async function update(id: string, members: string, { app: asked }: AppOption): Promise<Report> {
  const body = await dictionaryOrFile(members);
  const { service, pathOf } = await devicesOf(asked);
  const document = await service.admin('PUT', await pathOf(id), body);
  return { document, text: JSON.stringify(document, null, 2) };
}

async function remove(
  id: string,
  { app: asked, yes: isSure }: AppOption & { yes?: boolean },
): Promise<Report> {
  if (!isSure) await confirm(`Delete device ${id} for good?`);
  const { service, pathOf } = await devicesOf(asked);
  const document = await service.admin('DELETE', await pathOf(id));
  return { document, text: `Device ${id} is deleted.` };
}

async function removeAll({ app: asked, where: condition, ...options }: DeletionOptions): Promise<Report> {
  const where = await dictionaryOrFile(condition);
  const { service, path } = await devicesOf(asked);
  const expected =
    options.expected === undefined
      ? await count(service, path, where)
      : wholeNumber('--expected', options.expected);
  if (!options.yes) await confirm(`Delete ${expected} devices for good?`);
  const document = await service.admin('POST', `${path}/delete`, { where, expected });
  const { deleted } = z.object({ deleted: z.number() }).parse(document);
  return { document, text: `${deleted} devices are deleted.` };
}

const counted = z.looseObject({ count: z.number(), countIsLeast: z.boolean().optional() });

async function count(service: ServiceClient, path: string, where: object): Promise<number> {
  const query = new URLSearchParams({ where: JSON.stringify(where), count: '1', limit: '1' });
  const { count: found, countIsLeast } = counted.parse(await service.admin('GET', `${path}?${query}`));
  if (countIsLeast)
    throw new CommandFailure(`More than ${found} devices match: say how many with --expected.`);
  return found;
}
