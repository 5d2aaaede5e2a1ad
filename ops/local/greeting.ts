import { setTimeout as sleep } from 'node:timers/promises';
import { urlAt } from '../../shared/config/config.ts';
import { gatewayName, say, words } from '../cli/language.ts';
import { ProgressBar } from '../cli/report.ts';
import { padded, table } from '../cli/table.ts';
import { sandboxConnectors } from '../sandbox/all/definitions.ts';
import {
  type Demo,
  type DemoApi,
  type DemoProgress,
  demoDevices,
  demoProgress,
  demoRecord,
  pushDemo,
} from './demo.ts';

interface GreetingDetails {
  publicUrl: string;
  metricsPort: number;
  metricsHost: string;
  adminToken: string;
  dataDir: string;
  /**
   * Where the admin token comes from: the variable `CARILLON_ADMIN_TOKEN`, this start (`made`), or
   * a file of an earlier start.
   */
  tokenSource: 'environment' | 'made' | 'file';
  /** Single-use login link to the console. Undefined if the output does not go to a terminal. */
  loginLink: string | undefined;
}

/** Describes where the admin token is. Prints only a new token, because a log would store it. */
function tokenLocation({ tokenSource, adminToken, dataDir }: GreetingDetails): string {
  if (tokenSource === 'environment') return say('as CARILLON_ADMIN_TOKEN has it');
  const file = `${dataDir}/admin-token`;
  return tokenSource === 'made'
    ? `${adminToken}   ${say('(kept in {file})', { file })}`
    : say('in {file}', { file });
}

const labelled = (label: string, value: string): string => padded(label, 16) + value;

/**
 * Returns the text that `npm start` prints when the service is ready: addresses, the demo's keys,
 * and three calls to paste.
 */
export function greeting(
  details: GreetingDetails,
  demo: Demo,
  pages: { sandbox: string; tryWebPush: string },
): string {
  const { publicUrl: url } = details;
  const keys = `-H 'X-LC-Id: ${demo.appId}' -H 'X-LC-Key: ${demo.masterKey},master'`;
  const json = `-H 'Content-Type: application/json'`;
  const alert = JSON.stringify({ data: { alert: 'Hello again' } });
  const toOne = JSON.stringify({
    device_type: 'ios',
    device_ids: [demo.deviceToken],
    data: { alert: 'Just for you' },
  });
  return [
    labelled(say('console'), `${url}/console`),
    ...(details.loginLink === undefined
      ? []
      : [labelled(`  ${say('log in once')}`, details.loginLink)]),
    labelled('API', `${url}/1.1`),
    labelled(say('admin API'), `${url}/console/api`),
    labelled(
      say('metrics'),
      [`${url}/metrics`, `${urlAt(details.metricsHost, details.metricsPort)}/metrics`].join(
        say(' and '),
      ),
    ),
    labelled(say('sandbox'), `${pages.sandbox}/   ${say('(what each gateway received)')}`),
    labelled(say('try it'), `${pages.tryWebPush}   ${say('(a push to this browser)')}`),
    labelled(say('data'), details.dataDir),
    labelled(say('admin token'), tokenLocation(details)),
    '',
    labelled(say('demo app'), `X-LC-Id ${demo.appId}`),
    labelled('', `X-LC-Key ${demo.appKey}`),
    labelled('', `${say('master key')} ${demo.masterKey}`),
    '',
    `# ${say('a push to all devices')}`,
    `curl -s ${url}/1.1/push ${keys} ${json} -d '${alert}'`,
    `# ${say('a push to one device')}`,
    `curl -s ${url}/1.1/push/devices ${keys} ${json} -d '${toOne}'`,
    `# ${say('the records of the last pushes')}`,
    `curl -s '${url}/1.1/notifications?limit=2' ${keys}`,
    '',
  ].join('\n');
}

const pollMs = 50;
const timeoutMs = 60_000;
/** Maximum wait for acknowledgements. Devices that are not connected acknowledge later. */
const acknowledgeMs = 5000;

/** Sends the demo's first push. Shows a progress bar and then a table of the result. */
export async function showFirstPush(
  api: DemoApi,
  demo: Demo,
  print: (line: string) => void,
): Promise<void> {
  const objectId = await pushDemo(api, demo);
  const progress = await watch(api, demo, objectId);
  const record = await untilAcknowledged(api, demo, { objectId, progress });
  print('');
  print(resultTable(progress, record.lcSuccesses));
  print('');
}

async function watch(api: DemoApi, demo: Demo, objectId: string): Promise<DemoProgress> {
  let settled = 0;
  let devices = demoDevices;
  const bar = new ProgressBar({
    stream: process.stdout,
    marks: ['=', '-'],
    line: (shown) =>
      say('first push [{bar}] {settled}/{devices} devices', { bar: shown, settled, devices }),
    writesLines: true,
  });
  bar.show(settled, devices);
  const endsAtMs = performance.now() + timeoutMs;
  try {
    for (;;) {
      const progress = await demoProgress(api, demo, objectId);
      devices = Math.max(progress.devices, 1);
      settled = Object.values(progress.outcomes).reduce((sum, n) => sum + n, 0);
      bar.show(settled, devices);
      if (progress.status === 'done') return progress;
      if (performance.now() > endsAtMs)
        throw new Error(say('the first push is still {status}', { status: progress.status }));
      await sleep(pollMs);
    }
  } finally {
    bar.stop();
  }
}

/**
 * Waits until all messages on the device channel are acknowledged. This takes a moment after they
 * are stored.
 */
async function untilAcknowledged(
  api: DemoApi,
  demo: Demo,
  { objectId, progress }: { objectId: string; progress: DemoProgress },
): Promise<{ lcSuccesses: number }> {
  const expected = progress.connectors.channel?.sent ?? 0;
  const endsAtMs = performance.now() + acknowledgeMs;
  for (;;) {
    const record = await demoRecord(api, demo, objectId);
    if (record.lcSuccesses >= expected || performance.now() > endsAtMs) return record;
    await sleep(pollMs);
  }
}

function resultTable(progress: DemoProgress, acknowledged: number): string {
  const titles = [
    ...sandboxConnectors.map(
      (id) => [id, say('{gateway} (sandbox)', { gateway: gatewayName(id) })] as const,
    ),
    ['channel', say('device channel')] as const,
  ];
  const rows = titles.flatMap(([connector, title]) => {
    const totals = progress.connectors[connector];
    if (!totals) return [];
    const all = Object.values(totals).reduce((sum, n) => sum + n, 0);
    const sent = totals.sent ?? 0;
    return [[title, all, sent, all - sent, connector === 'channel' ? acknowledged : '-']];
  });
  return table(words('connector', 'devices', 'sent', 'not sent', 'acknowledged'), rows);
}
