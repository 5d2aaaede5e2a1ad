import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { monitoringFiles } from '../monitoring/files.ts';
import { channelPage } from './channel.ts';
import { clientFile } from './client.ts';
import { commandLinePage } from './command-line.ts';
import { adminHttpApiPage, httpApiPage, openApiFile } from './http-api.ts';
import { table } from './markdown.ts';
import {
  appOptionsPage,
  configurationPage,
  credentialsPage,
  errorsPage,
  metricsPage,
} from './reference-tables.ts';
import { webhookEventsPage } from './webhook-events.ts';

/** Folder of the documentation. */
export const docsFolder = new URL('../../docs/', import.meta.url);

/**
 * Generated files by their path below `docs/`. A file must have the same content on every machine.
 */
export const pages: Readonly<Record<string, () => string | Promise<string>>> = {
  'reference/admin-http-api.md': adminHttpApiPage,
  'reference/app-options.md': appOptionsPage,
  'reference/channel.md': channelPage,
  'reference/command-line.md': commandLinePage,
  'reference/configuration.md': configurationPage,
  'reference/credentials.md': credentialsPage,
  'reference/errors.md': errorsPage,
  'reference/http-api.md': httpApiPage,
  'reference/metrics.md': metricsPage,
  'reference/webhook-events.md': webhookEventsPage,
  'openapi.json': openApiFile,
  '../ops/client/operations.ts': clientFile,
  '../README.md': readmeWithClients,
  ...Object.fromEntries(
    Object.entries(monitoringFiles()).map(([name, text]) => [
      `../ops/monitoring/${name}`,
      () => text,
    ]),
  ),
};

/**
 * Contents of docs/clients.json for the README's table of clients. `driven` lists the clients that
 * `test/clients` runs; the last run with `UPDATE_CLIENTS=1` wrote it. `byHand` lists the clients
 * that were tried by hand or only read.
 */
const clients = z.strictObject({
  driven: z.array(
    z.strictObject({
      name: z.string(),
      version: z.string(),
      topics: z.array(z.string()),
      test: z.string(),
      date: z.iso.date(),
    }),
  ),
  byHand: z.array(z.strictObject({ name: z.string(), how: z.string(), date: z.iso.date() })),
});

const [begin, end] = ['<!-- clients: written by `npm run docs` -->', '<!-- end of clients -->'];

/** Returns the README with the table generated from docs/clients.json. */
async function readmeWithClients(): Promise<string> {
  const read = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8');
  const readme = await read('README.md');
  const { driven, byHand } = clients.parse(JSON.parse(await read('docs/clients.json')));
  const [before = '', rest = ''] = readme.split(begin);
  const [, after] = rest.split(end);
  if (after === undefined) throw new Error(`README.md lacks the lines ${begin} and ${end}`);
  // Several test files may run the same client.
  const byName = Map.groupBy(driven, ({ name, version }) => JSON.stringify([name, version]));
  const rows = [...byName].map(([key, parts]) => [
    ...JSON.parse(key),
    `run by tests: ${parts.flatMap(({ topics }) => topics).join(', ')}`,
    parts.map(({ date }) => date).toSorted()[0] ?? '',
  ]);
  const tried = byHand.map(({ name, how, date }) => [name, '', how, date]);
  const content = table(['client', 'version', 'how it was tried', 'on'], [...rows, ...tried]);
  return `${before}${begin}\n${content}\n${end}${after}`;
}
