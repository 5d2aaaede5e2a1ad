import { urlAt } from '../../shared/config.ts';
import type { Demo } from './demo.ts';

interface Addresses {
  publicUrl: string;
  metricsPort: number;
  metricsHost: string;
  adminToken: string;
  dataDir: string;
  isNew: boolean;
}

/** What `npm start` prints when all is up: where things are, the demo's keys, three calls to paste. */
export function greeting(place: Addresses, demo: Demo, sandboxPage: string): string {
  const { publicUrl: url } = place;
  const keys = `-H 'X-LC-Id: ${demo.appId}' -H 'X-LC-Key: ${demo.masterKey},master'`;
  const json = `-H 'Content-Type: application/json'`;
  const alert = JSON.stringify({ data: { alert: 'Hello again' } });
  const toOne = JSON.stringify({
    device_type: 'ios',
    device_ids: [demo.deviceToken],
    data: { alert: 'Just for you' },
  });
  return [
    `API             ${url}/1.1`,
    `admin API       ${url}/console/api`,
    `metrics         ${url}/metrics and ${urlAt(place.metricsHost, place.metricsPort)}/metrics`,
    `sandbox         ${sandboxPage}/   (what each gateway received)`,
    `data            ${place.dataDir}`,
    place.isNew
      ? `admin token     ${place.adminToken}   (kept in ${place.dataDir}/admin-token)`
      : `admin token     in ${place.dataDir}/admin-token`,
    '',
    `demo app        X-LC-Id ${demo.appId}`,
    `                X-LC-Key ${demo.appKey}`,
    `                master key ${demo.masterKey}`,
    '',
    '# a push to all devices',
    `curl -s ${url}/1.1/push ${keys} ${json} -d '${alert}'`,
    '# a push to one device',
    `curl -s ${url}/1.1/push/devices ${keys} ${json} -d '${toOne}'`,
    '# the records of the last pushes',
    `curl -s '${url}/1.1/notifications?limit=2' ${keys}`,
    '',
  ].join('\n');
}
