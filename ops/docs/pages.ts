import { monitoringFiles } from '../monitoring/files.ts';
import { channelPage } from './channel.ts';
import { clientFile } from './client.ts';
import { chineseReadmeWithClients, readmeWithClients } from './clients-table.ts';
import { commandLinePage } from './command-line.ts';
import { adminHttpApiPage, httpApiPage, openApiFile } from './http-api.ts';
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
  '../README.zh.md': chineseReadmeWithClients,
  ...Object.fromEntries(
    Object.entries(monitoringFiles()).map(([name, text]) => [
      `../ops/monitoring/${name}`,
      () => text,
    ]),
  ),
};
