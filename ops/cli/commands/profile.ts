import { z } from 'zod';
import { readDictionary } from '../input.ts';
import { type Report, type Shell, table } from '../report.ts';
import { connect } from '../service.ts';

const entries = z.object({
  results: z.array(
    z.looseObject({
      connector: z.string(),
      name: z.string(),
      createdAt: z.string(),
      updatedAt: z.string(),
    }),
  ),
});

const profilePath = (appId: string, connector: string, name: string) =>
  `/apps/${encodeURIComponent(appId)}/profiles/${encodeURIComponent(connector)}/${encodeURIComponent(name)}`;

/** `carillon profile …`: the credentials of push gateways, which go in and never come out. */
export function addProfileCommands({ program, act }: Shell): void {
  const profile = program.command('profile').description('credentials of push gateways');
  profile
    .command('put <appId> <connector> <file>')
    .description('store credentials from a JSON file, or from standard input for -')
    .option('--name <name>', 'name of the profile', '_default')
    .action(act(put));
  profile.command('list <appId>').description('profiles of an application').action(act(list));
  profile
    .command('delete <appId> <connector>')
    .description('delete a profile')
    .option('--name <name>', 'name of the profile', '_default')
    .action(act(remove));
}

async function put(
  appId: string,
  connector: string,
  file: string,
  { name }: { name: string },
): Promise<Report> {
  const credentials = await readDictionary(file);
  const document = await (await connect()).admin('PUT', profilePath(appId, connector, name), credentials);
  return { document, text: `Profile ${connector}/${name} is stored.` };
}

async function list(appId: string): Promise<Report> {
  const reply = await (await connect()).admin('GET', `/apps/${encodeURIComponent(appId)}/profiles`);
  const { results } = entries.parse(reply);
  const rows = results.map((one) => [one.connector, one.name, one.createdAt, one.updatedAt]);
  const text =
    rows.length > 0 ? table(['connector', 'name', 'created', 'updated'], rows) : 'There are no profiles.';
  return { document: reply, text };
}

async function remove(appId: string, connector: string, { name }: { name: string }): Promise<Report> {
  const document = await (await connect()).admin('DELETE', profilePath(appId, connector, name));
  return { document, text: `Profile ${connector}/${name} is deleted.` };
}
