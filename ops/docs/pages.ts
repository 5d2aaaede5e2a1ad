import { appOptionsPage } from './app-options.ts';
import { channelPage } from './channel.ts';
import { commandLinePage } from './command-line.ts';
import { configurationPage } from './configuration.ts';
import { credentialsPage } from './credentials.ts';
import { errorsPage } from './errors.ts';
import { httpApiPage } from './http-api.ts';
import { metricsPage } from './metrics.ts';

/** Folder of the generated pages. */
export const referenceFolder = new URL('../../docs/reference/', import.meta.url);

/** Generated pages by file name. Each gives the same text on every machine. */
export const pages: Readonly<Record<string, () => string | Promise<string>>> = {
  'app-options.md': appOptionsPage,
  'channel.md': channelPage,
  'command-line.md': commandLinePage,
  'configuration.md': configurationPage,
  'credentials.md': credentialsPage,
  'errors.md': errorsPage,
  'http-api.md': httpApiPage,
  'metrics.md': metricsPage,
};
