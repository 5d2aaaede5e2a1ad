import { stat } from 'node:fs/promises';
import { Option } from 'commander';
import { isJsonObject, type JsonObject } from '../../../../shared/domain/json.ts';
import type { Reply } from '../../../client/client.ts';
import { app, argument, flag, type Source, type Values } from '../../arguments.ts';
import { command } from '../../command.ts';
import { dictionaryOrFile } from '../../input.ts';
import { type English, gatewayName, say, words } from '../../language.ts';
import type { Report } from '../../report.ts';
import { chooseAppId, connect, type ServiceClient } from '../../service.ts';
import { table } from '../../table.ts';

/** Option with the replacement: `data` as JSON, a file with it, or only the text. */
const replacement = (): Source<JsonObject> => ({
  declared: new Option(
    '--replace <json, file or text>',
    'message that replaces it where the gateway cannot recall: data, or the text alone' satisfies English,
  ),
  read: replacementOf,
});

async function replacementOf(value: string): Promise<JsonObject> {
  const isJson = value.trimStart().startsWith('{') || value === '-';
  const isFile = isJson || (await stat(value).catch(() => undefined))?.isFile() === true;
  if (!isFile) return { alert: value };
  const { data, ...more } = await dictionaryOrFile(value);
  // The member `replacement` of the call is accepted too.
  if (isJsonObject(data) && Object.keys(more).length === 0) return data;
  return data === undefined ? more : { data, ...more };
}

const options = {
  id: argument('<objectId>', 'the push'),
  app: app(),
  dryRun: flag('--dry-run', 'recall nothing: show what a recall would do'),
  replacement: replacement(),
};

/** `carillon recall`: recalls or replaces the messages of a push. */
export const recallCommand = command(
  'recall',
  'recall a finished or cancelled push where gateways can, or replace its message',
  {
    example: `recall Xk3vD9wq0TgTz1aB --dry-run --replace 'The sale starts on Monday'`,
    takes: options,
    run: recall,
  },
);

const pollMs = 500;

async function recall({
  id,
  app: requestedAppId,
  dryRun,
  replacement: data,
}: Values<typeof options>): Promise<Report> {
  const service = await connect();
  const path = { id, appId: await chooseAppId(service, requestedAppId) };
  const body = { ...(dryRun ? { dryRun } : {}), ...(data ? { replacement: { data } } : {}) };
  const document = await service.call('recallPush', { path, body });
  if (dryRun) return describe(document, say('Nothing was recalled.'));
  const ended = await untilEnded(service, path);
  const shown = ended?.status === 'done' ? { connectors: ended.connectors } : document;
  return describe(
    shown,
    ended?.status === 'paused'
      ? say('The recall {objectId} is paused.', { objectId: ended.objectId })
      : '',
  );
}

type Counts = Pick<Reply<'recallPush'>, 'connectors'>;

/** Waits until the recall of a push has ended. Returns it, or undefined if the record has none. */
async function untilEnded(service: ServiceClient, path: { appId: string; id: string }) {
  for (;;) {
    const { recall: newest } = await service.call('getAppPush', { path });
    if (newest?.status !== 'in-queue') return newest;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

function describe(document: Counts, note: string): Report {
  const rows = Object.entries(document.connectors).map(([connector, counts]) => [
    gatewayName(connector),
    counts?.recalled ?? 0,
    counts?.replaced ?? 0,
    counts?.impossible ?? 0,
  ]);
  const text =
    rows.length === 0
      ? say('The push was sent to no device.')
      : table(words('connector', 'recalled', 'replaced', 'impossible'), rows);
  return { document, text: note === '' ? text : `${text}\n\n${note}` };
}
