import { urlAt } from '../../shared/config/config.ts';
import { say } from '../cli/language.ts';
import { padded } from '../cli/table.ts';
import type { Demo } from './demo.ts';

interface GreetingDetails {
  publicUrl: string;
  metricsPort: number;
  metricsHost: string;
  adminToken: string;
  dataDir: string;
  /**
   * Whether the variable `CARILLON_ADMIN_TOKEN` gave the token, this start made it, or a file of an
   * earlier start has it.
   */
  tokenSource: 'environment' | 'made' | 'file';
  /** Link to the console that logs in once; undefined where no person reads. */
  loginLink: string | undefined;
}

/** Says where the admin token is. Only a new token is printed: a log would keep it. */
function tokenPlace({ tokenSource, adminToken, dataDir }: GreetingDetails): string {
  if (tokenSource === 'environment') return say('as CARILLON_ADMIN_TOKEN has it');
  const file = `${dataDir}/admin-token`;
  return tokenSource === 'made'
    ? `${adminToken}   ${say('(kept in {file})', { file })}`
    : say('in {file}', { file });
}

const labelled = (label: string, value: string): string => padded(label, 16) + value;

/** Returns the text that `npm start` prints when it is ready: addresses, the demo's keys, three calls to paste. */
export function greeting(details: GreetingDetails, demo: Demo, sandboxPage: string): string {
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
    ...(details.loginLink === undefined ? [] : [labelled(`  ${say('log in once')}`, details.loginLink)]),
    labelled('API', `${url}/1.1`),
    labelled(say('admin API'), `${url}/console/api`),
    labelled(
      say('metrics'),
      [`${url}/metrics`, `${urlAt(details.metricsHost, details.metricsPort)}/metrics`].join(say(' and ')),
    ),
    labelled(say('sandbox'), `${sandboxPage}/   ${say('(what each gateway received)')}`),
    labelled(say('data'), details.dataDir),
    labelled(say('admin token'), tokenPlace(details)),
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
